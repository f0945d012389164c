// How a chart looks: colours, type, number formats, error bars, and where title, legend and axis
// titles go. Rust says what is drawn (an ECharts option as JSON), this says how.
(() => {
'use strict';

// The page may set these; the values here are right on white, for a file of its own.
const FOREGROUND = 'var(--chart-fg, #24292f)';
const MUTED = 'var(--chart-muted, #57606a)';
const AXIS = 'var(--chart-axis, #8c959f)';
const GRID = 'var(--chart-grid, #e4e7eb)';
const BACKGROUND = 'var(--chart-bg, #fff)';
const FONT = 'var(--chart-font, system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif)';
// Okabe and Ito's palette, which people with any colour vision can tell apart; its yellow is too
// faint on white and gives way to grey.
const PALETTE = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#7f7f7f', '#8a6d3b']
  .map((colour, index) => `var(--chart-${index + 1}, ${colour})`);
// One hue from light to dark, whose order survives grey print and every colour vision.
const SEQUENCE = ['#e8f1f7', '#9ecae1', '#4292c6', '#0b559f', '#08306b'];

const EDGE = 16;
const FONT_SIZE = 13;
const TITLE_SIZE = 16;
const BARS = { barMaxWidth: 64, barGap: '6%', barCategoryGap: '32%' };

// ---- text -------------------------------------------------------------------------------------

// Widths of Helvetica's characters 32 to 126, in thousandths of the type size.
const WIDTHS = [
  278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
  556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
  611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
  667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
  222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
// The fonts that readers have are up to a sixth wider than Helvetica.
const WIDER = 1.14;

function textWidth(text, size, bold) {
  let width = 0;
  for (const character of String(text)) {
    const code = character.codePointAt(0);
    width += code >= 0x2e80 ? 1000 : WIDTHS[code - 32] ?? 600;
  }
  return width / 1000 * size * WIDER * (bold ? 1.12 : 1);
}

/** Broken into lines between words; ECharts itself would begin a line with the space. */
function wrapped(text, width, size, bold) {
  const lines = [];
  for (const word of String(text).split(' ')) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
    if (lines.length && textWidth(longer, size, bold) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.join('\n');
}

echarts.setPlatformAPI({
  measureText(text, font) {
    const size = parseFloat((/([\d.]+)px/.exec(font) || [])[1]) || FONT_SIZE;
    // zrender takes this character's width for the height of a line.
    if (text === '国') return { width: size };
    return { width: textWidth(text, size, /bold|[6-9]00/.test(font)) };
  },
});

function grouped(digits) {
  const [whole, fraction] = digits.split('.');
  const separated = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return fraction ? `${separated}.${fraction}` : separated;
}

const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹';
function powerOfTen(exponent) {
  const digits = String(Math.abs(exponent)).replace(/\d/g, (digit) => SUPERSCRIPTS[digit]);
  return `10${exponent < 0 ? '⁻' : ''}${digits}`;
}

// 5,000 and 1M, 0.25, 3×10⁻⁶: at most `digits` significant digits, of whole numbers below a
// million all. M, G and T are the decimal ones.
function shortNumber(value, digits) {
  const size = Math.abs(value);
  if (size === 0) return '0';
  const sign = value < 0 ? '−' : '';
  const rounded = (number) => String(Number(number.toPrecision(digits)));
  if (size >= 1e15 || size < 1e-4) {
    const [mantissa, exponent] = size.toExponential(Math.min(digits, 4) - 1).split('e');
    const factor = Number(mantissa);
    return sign + (factor === 1 ? '' : `${factor}×`) + powerOfTen(Number(exponent));
  }
  for (const [unit, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M']]) {
    if (size >= unit) return sign + grouped(rounded(size / unit)) + letter;
  }
  return sign + grouped(size >= 1000 ? String(Math.round(size)) : rounded(size));
}

const onAxis = (value) => shortNumber(value, 10);
const onMark = (value) => shortNumber(value, 4);

// ---- error bars -------------------------------------------------------------------------------

// A row is x, low, high, value to print or null, and for bars: which of how many side by side.
function errorBar(params, api) {
  const x = api.value(0);
  const low = api.coord([x, api.value(1)]);
  const high = api.coord([x, api.value(2)]);
  const slots = api.value(5);
  let centre = low[0];
  if (slots > 0) centre += api.barLayout({ count: slots, ...BARS })[api.value(4)].offsetCenter;
  const cap = slots > 0 ? 5 : 4;
  const stroke = slots > 0 ? FOREGROUND : api.visual('color');
  const style = { stroke, lineWidth: 1.5, fill: 'none' };
  const line = (x1, y1, x2, y2) => ({ type: 'line', z2: 100, shape: { x1, y1, x2, y2 }, style });
  const children = [
    line(centre, low[1], centre, high[1]),
    line(centre - cap, low[1], centre + cap, low[1]),
    line(centre - cap, high[1], centre + cap, high[1]),
  ];
  const printed = api.value(3);
  if (Number.isFinite(printed)) {
    children.push({
      type: 'text',
      z2: 100,
      style: {
        text: onMark(printed), x: centre, y: Math.min(low[1], high[1]) - 5,
        align: 'center', verticalAlign: 'bottom', fill: FOREGROUND, font: `12px ${FONT}`,
      },
    });
  }
  return { type: 'group', children };
}

// ---- style ------------------------------------------------------------------------------------

const text = (color, fontSize, more) => ({ color, fontSize, fontFamily: FONT, ...more });

function axisStyle(lines) {
  return {
    nameTextStyle: text(MUTED, FONT_SIZE),
    axisLine: { show: !lines, lineStyle: { color: AXIS } },
    axisTick: { show: !lines, lineStyle: { color: AXIS } },
    axisLabel: { ...text(MUTED, FONT_SIZE), margin: 8, hideOverlap: true },
    splitLine: { show: lines, lineStyle: { color: GRID } },
    splitArea: { show: false },
    minorTick: { show: false },
    minorSplitLine: { show: false },
  };
}

function timeAxisStyle() {
  const style = axisStyle(false);
  style.axisLabel.formatter = {
    year: '{yyyy}', month: '{MMM} {yyyy}', day: '{d} {MMM}', hour: '{HH}:{mm}', minute: '{HH}:{mm}',
    second: '{HH}:{mm}:{ss}', millisecond: '{HH}:{mm}:{ss}.{SSS}', none: '{HH}:{mm}:{ss}.{SSS}',
  };
  return style;
}

const THEME = {
  color: PALETTE,
  backgroundColor: BACKGROUND,
  textStyle: { fontFamily: FONT, color: FOREGROUND, fontSize: FONT_SIZE },
  title: {
    left: EDGE, padding: 0, itemGap: 4,
    textStyle: text(FOREGROUND, TITLE_SIZE, { fontWeight: 600, lineHeight: 21 }),
    subtextStyle: text(MUTED, FONT_SIZE),
  },
  legend: {
    left: EDGE, padding: 0, itemGap: 6, itemWidth: 18, itemHeight: 11, selectedMode: false,
    // The gap between columns; `itemGap` is that between rows, too.
    textStyle: text(FOREGROUND, FONT_SIZE, { padding: [0, 12, 0, 0] }),
  },
  bar: {
    ...BARS,
    label: { ...text(FOREGROUND, 12), position: 'top', distance: 4 },
    labelLayout: { hideOverlap: true },
  },
  line: { symbol: 'circle', symbolSize: 7, showAllSymbol: true, lineStyle: { width: 2.25 } },
  scatter: { symbolSize: 8, itemStyle: { opacity: 0.75 } },
  boxplot: { boxWidth: [8, 48], itemStyle: { borderWidth: 1.5, color: 'transparent' } },
  heatmap: { itemStyle: { borderColor: BACKGROUND, borderWidth: 1 } },
  categoryAxis: axisStyle(false),
  valueAxis: axisStyle(true),
  logAxis: axisStyle(true),
  timeAxis: timeAxisStyle(),
  visualMap: {
    inRange: { color: SEQUENCE }, textStyle: text(MUTED, 12), itemWidth: 12, itemHeight: 160,
  },
};

// ---- layout -----------------------------------------------------------------------------------

const list = (value) => (value == null ? [] : Array.isArray(value) ? value : [value]);

/** Puts in the parts of an option that JSON cannot hold. */
function withFunctions(option) {
  for (const axis of [...option.xAxis, ...option.yAxis]) {
    if (axis.type !== 'category' && axis.type !== 'time') {
      axis.axisLabel = { formatter: onAxis, ...axis.axisLabel };
    }
  }
  for (const series of option.series) {
    // Else only the first few thousand points are in the first drawing, which here is the last.
    series.progressive = 0;
    if (series.type === 'custom') series.renderItem = errorBar;
    if (series.label?.show) {
      series.label.formatter ??= ({ value }) => onMark(value[value.length - 1]);
      if (series.type === 'bar') series.data = series.data.map(below);
      if (series.type === 'heatmap') series.data = series.data.map(onCell(list(option.visualMap)[0]));
    }
  }
  for (const map of list(option.visualMap)) {
    map.formatter ??= onMark;
    map.text ??= [onMark(map.max), onMark(map.min)];
  }
}

/** The label of a cell is light where the cell is dark. */
function onCell({ min, max }) {
  return (value) => {
    const color = (value[2] - min) / (max - min) > 0.55 ? '#fff' : '#24292f';
    return { value, label: { color } };
  };
}

/** The label of a negative bar stands below it. */
function below(point) {
  return point[1] < 0 ? { value: point, label: { position: 'bottom' } } : point;
}

const SLANT = 38;
const SLANTED_WIDTH = 150;

const widest = (texts) => Math.max(0, ...texts.map((one) => textWidth(one, FONT_SIZE)));

/**
 * How the names of categories stand below their places: in one line, broken into lines, or else
 * slanted. `height` is what they take, `reach` how far the first one goes to the left of its place.
 */
function fitCategories(axis, width) {
  const names = (axis.data ?? []).map(String);
  const place = width / Math.max(names.length, 1) - 8;
  if (widest(names) <= place) return { height: 13, reach: 0, style: { interval: 0 } };
  if (place >= 48 && widest(names.flatMap((name) => name.split(' '))) <= place) {
    const formatter = (name) => wrapped(name, place, FONT_SIZE);
    const lines = Math.max(...names.map((name) => formatter(name).split('\n').length));
    return { height: 15 * lines, reach: 0, style: { interval: 0, formatter, lineHeight: 15 } };
  }
  const slant = SLANT * Math.PI / 180;
  const short = names.map(shortened);
  return {
    height: widest(short) * Math.sin(slant) + 13 * Math.cos(slant),
    reach: textWidth(short[0], FONT_SIZE) * Math.cos(slant) - place / 2,
    style: { rotate: SLANT, formatter: shortened, interval: place > 10 ? 0 : 'auto' },
  };
}

/** Left out in the middle: what tells names apart stands at their ends. */
function shortened(name) {
  let text = name;
  for (let kept = name.length - 1; kept > 4 && textWidth(text, FONT_SIZE) > SLANTED_WIDTH; kept--) {
    text = `${name.slice(0, Math.ceil(kept / 2))}…${name.slice(-Math.floor(kept / 2))}`;
  }
  return text;
}

/** A legend whose signs look like what they stand for, and the height of as many rows as it takes. */
function fitLegend({ legend, series }, width) {
  const style = {};
  if (series.every((one) => one.areaStyle)) style.icon = 'roundRect';
  if (series.some((one) => one.type === 'scatter')) style.itemWidth = 11;
  let [rows, used] = [1, 0];
  for (const item of legend.data ?? series.map((one) => one.name)) {
    const name = item?.name ?? item;
    const needed = (style.itemWidth ?? 18) + 5 + textWidth(name, FONT_SIZE) + 18;
    if (used > 0 && used + needed > width) [rows, used] = [rows + 1, 0];
    used += needed;
  }
  return { height: rows * 19 - 6, legend: { width, ...style, ...legend } };
}

/** Title, legend and the vertical axis's title, one below the other. Returns where the plot begins. */
function placeHeadings(option, axisTitle, width) {
  let top = EDGE - 2;
  // A word may still be longer than a line.
  const broken = { width, overflow: 'break' };
  const lines = (text) => text.split('\n').length;
  option.title = list(option.title).map((title) => {
    const text = wrapped(title.text ?? '', width, TITLE_SIZE, true);
    const placed = { top, ...title, text, textStyle: { ...broken, ...title.textStyle } };
    top += lines(text) * 21 + (title.subtext ? lines(title.subtext) * 17 : 0) + 12;
    return placed;
  });
  if (option.legend && !Array.isArray(option.legend) && option.legend.show !== false) {
    const { height, legend } = fitLegend(option, width);
    option.legend = { top, ...legend };
    top += height + 12;
  }
  if (axisTitle) {
    const title = wrapped(axisTitle, width, FONT_SIZE);
    const style = text(MUTED, FONT_SIZE, { fontWeight: 400, lineHeight: 17, ...broken });
    option.title.push({ top, text: title, textStyle: style });
    top += lines(title) * 17 + 10;
  }
  return top;
}

/** Puts everything in its place; what the author's option says stays as it is. */
function layOut(option, width) {
  const inner = width - 2 * EDGE;
  const [horizontal] = option.xAxis;
  const [vertical] = option.yAxis;
  const maps = list(option.visualMap);

  // The vertical axis's title stands upright above the axis, where it is read without turning
  // the head.
  const axisTitle = vertical.nameLocation ? '' : vertical.name ?? '';
  if (axisTitle) delete vertical.name;
  const top = placeHeadings(option, axisTitle, inner);

  let labels = { height: 13, reach: 0 };
  if (horizontal.type === 'category') {
    labels = fitCategories(horizontal, inner - 56);
    horizontal.axisLabel = { ...labels.style, ...horizontal.axisLabel };
  }
  horizontal.axisLine = { show: true, ...horizontal.axisLine };
  if (horizontal.name && !horizontal.nameLocation) {
    horizontal.nameLocation = 'middle';
    horizontal.nameGap ??= labels.height + 16;
    horizontal.nameTextStyle = { verticalAlign: 'top', ...horizontal.nameTextStyle };
  }
  if (vertical.type === 'category') vertical.axisTick = { show: false, ...vertical.axisTick };

  for (const map of maps) {
    if (map.left == null && map.right == null) Object.assign(map, { left: 'auto', right: EDGE });
    if (map.top == null && map.bottom == null) Object.assign(map, { top: 'middle', bottom: 'auto' });
  }
  option.grid = {
    // Where names reach out further than numbers beside the vertical axis do.
    left: EDGE + Math.max(0, labels.reach - 36),
    right: EDGE + (maps.length ? 74 : 10),
    top,
    bottom: EDGE + (horizontal.name ? 24 : 0),
    containLabel: true,
    ...option.grid,
  };
}

/** ECharts leaves out what it does not know without a word. */
function refuseUnknown(chart, option) {
  const known = new Set(chart.getModel().getSeries().map((series) => series.subType));
  const unknown = option.series.find((series) => !known.has(series.type));
  if (unknown) throw new Error(`ECharts has no series type '${unknown.type}'`);
}

globalThis.draw = (requestJson) => {
  const { width, height, option } = JSON.parse(requestJson);
  option.animation = false;
  option.useUTC = true;
  for (const part of ['xAxis', 'yAxis', 'series']) option[part] = list(option[part]);
  withFunctions(option);
  layOut(option, width);
  const chart = echarts.init(null, THEME, { renderer: 'svg', ssr: true, width, height });
  chart.setOption(option);
  refuseUnknown(chart, option);
  // The type face stands once on the whole drawing instead of on each text.
  return chart.renderToSVGString({ useViewBox: true })
    .replaceAll(`font-family:${FONT};`, '')
    .replace('<svg ', `<svg style="font-family:${FONT};max-width:100%;height:auto" `);
};
})();
