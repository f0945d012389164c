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
const WIDER = 1.1;

function textWidth(text, size, bold) {
  let width = 0;
  for (const character of String(text)) {
    const code = character.codePointAt(0);
    width += code >= 0x2e80 ? 1000 : WIDTHS[code - 32] ?? 600;
  }
  return width / 1000 * size * WIDER * (bold ? 1.06 : 1);
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
  const style = { stroke: api.visual('color'), lineWidth: 1.5, fill: 'none' };
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

const THEME = {
  color: PALETTE,
  backgroundColor: BACKGROUND,
  textStyle: { fontFamily: FONT, color: FOREGROUND, fontSize: FONT_SIZE },
  title: {
    left: EDGE, padding: 0, itemGap: 4,
    textStyle: text(FOREGROUND, 16, { fontWeight: 600, lineHeight: 21 }),
    subtextStyle: text(MUTED, FONT_SIZE),
  },
  legend: {
    left: EDGE, padding: 0, itemGap: 18, itemWidth: 18, itemHeight: 11, selectedMode: false,
    textStyle: text(FOREGROUND, FONT_SIZE),
  },
  bar: {
    ...BARS,
    label: { ...text(FOREGROUND, 12), position: 'top', distance: 4 },
    labelLayout: { hideOverlap: true },
  },
  line: { symbol: 'circle', symbolSize: 7, showAllSymbol: true, lineStyle: { width: 2.25 } },
  scatter: { symbolSize: 8, itemStyle: { opacity: 0.75 } },
  boxplot: { boxWidth: [8, 48], itemStyle: { borderWidth: 1.5 } },
  heatmap: { itemStyle: { borderColor: BACKGROUND, borderWidth: 1 } },
  categoryAxis: axisStyle(false),
  valueAxis: axisStyle(true),
  logAxis: axisStyle(true),
  timeAxis: axisStyle(false),
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
  for (const map of list(option.visualMap)) map.formatter ??= onMark;
}

/** The label of a cell is light where the cell is dark. */
function onCell({ min, max }) {
  return (value) => {
    const color = (value[2] - min) / (max - min) > 0.45 ? '#fff' : '#24292f';
    return { value, label: { color } };
  };
}

/** The label of a negative bar stands below it. */
function below(point) {
  return point[1] < 0 ? { value: point, label: { position: 'bottom' } } : point;
}

/** Labels of categories that are wider than their place: broken into lines, or else slanted. */
function fitCategories(axis, width) {
  const names = axis.data ?? [];
  const place = width / Math.max(names.length, 1) - 8;
  const longest = Math.max(0, ...names.map((name) => textWidth(name, FONT_SIZE)));
  if (longest <= place) return { interval: 0 };
  const longestWord = Math.max(0, ...names.flatMap((name) =>
    String(name).split(' ').map((word) => textWidth(word, FONT_SIZE))));
  if (longestWord <= place && place >= 48) return { interval: 0, width: place, overflow: 'break' };
  return { rotate: 38, width: 150, overflow: 'truncate', interval: place > 10 ? 0 : 'auto' };
}

function headingHeight(chart, kind, index) {
  const model = chart.getModel().getComponent(kind, index);
  return model ? chart.getViewOfComponentModel(model).group.getBoundingRect().height : 0;
}

/** Title, legend and the vertical axis's title, one below the other, above the plot. */
function stackHeadings(chart, option, author) {
  let top = EDGE - 2;
  const patch = { title: [] };
  option.title.forEach((title, index) => {
    const isAxisTitle = index === option.title.length - 1;
    if (isAxisTitle && option.legend) {
      patch.legend = { top: author.legend?.top ?? top };
      top += headingHeight(chart, 'legend', 0) + 12;
    }
    patch.title.push({ top: title.top ?? top });
    const height = title.text || title.subtext ? headingHeight(chart, 'title', index) : 0;
    top += height && height + (isAxisTitle ? 10 : 12);
  });
  return { patch, top };
}

/** Everything about the option that does not need a first drawing. */
function prepare(option, width) {
  option.animation = false;
  option.useUTC = true;
  for (const part of ['xAxis', 'yAxis', 'series']) option[part] = list(option[part]);
  withFunctions(option);

  const [horizontal] = option.xAxis;
  const [vertical] = option.yAxis;
  const inner = width - 2 * EDGE;
  const wrapped = { width: inner, overflow: 'break' };
  // The vertical axis's title stands upright above the axis, where it is read without turning
  // the head.
  const axisTitle = vertical?.nameLocation ? '' : vertical?.name ?? '';
  if (axisTitle) delete vertical.name;
  option.title = [
    ...list(option.title).map((title) => ({ ...title, textStyle: { ...wrapped, ...title.textStyle } })),
    { text: axisTitle, textStyle: text(MUTED, FONT_SIZE, { fontWeight: 400, lineHeight: 17, ...wrapped }) },
  ];
  if (horizontal?.name && !horizontal.nameLocation) {
    horizontal.nameLocation = 'middle';
    horizontal.nameTextStyle = { verticalAlign: 'top', ...horizontal.nameTextStyle };
  }
  const right = EDGE + (list(option.visualMap).length ? 74 : 10);
  option.grid = {
    left: EDGE, right, top: 60, bottom: EDGE + (horizontal?.name ? 24 : 0), containLabel: true,
    ...option.grid,
  };
  if (horizontal?.type === 'category') {
    const fitted = fitCategories(horizontal, inner - 56);
    horizontal.axisLabel = { ...fitted, ...horizontal.axisLabel };
  }
}

/** What the first drawing tells: how high the headings and the horizontal axis's labels are. */
function settle(chart, option, author, height) {
  const { patch, top } = stackHeadings(chart, option, author);
  patch.grid = { top: author.grid?.top ?? top };
  const grid = chart.getModel().getComponent('grid');
  if (grid && option.xAxis[0]?.nameLocation === 'middle' && option.xAxis[0].nameGap == null) {
    const plot = grid.coordinateSystem.getRect();
    const bottom = height - plot.y - plot.height;
    patch.xAxis = [{ nameGap: bottom - option.grid.bottom + 8 }];
  }
  chart.setOption(patch);
}

/** ECharts leaves out what it does not know without a word. */
function refuseUnknown(chart, option) {
  const known = new Set(chart.getModel().getSeries().map((series) => series.subType));
  const unknown = option.series.find((series) => !known.has(series.type));
  if (unknown) throw new Error(`ECharts has no series type '${unknown.type}'`);
}

globalThis.draw = (requestJson) => {
  const { width, height, option, author } = JSON.parse(requestJson);
  const chart = echarts.init(null, THEME, { renderer: 'svg', ssr: true, width, height });
  prepare(option, width);
  chart.setOption(option);
  refuseUnknown(chart, option);
  settle(chart, option, author, height);
  // The type face stands once on the whole drawing instead of on each text.
  return chart.renderToSVGString({ useViewBox: true })
    .replaceAll(`font-family:${FONT};`, '')
    .replace('<svg ', `<svg style="font-family:${FONT};max-width:100%;height:auto" `);
};
})();
