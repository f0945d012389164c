// What ECharts expects to find around it. Time and chance are left out, so that the same rows
// always come to the same drawing.
globalThis.console = { log() {}, info() {}, warn() {}, error() {}, debug() {} };
globalThis.setTimeout = () => 0;
globalThis.clearTimeout = () => {};
Math.random = () => 0.5;
