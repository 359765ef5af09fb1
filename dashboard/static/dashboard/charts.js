// Charts of the overview: canvas[data-chart], drawn with Chart.js. Colours are resolved here, because Chart.js
// computes other shades from them and knows neither CSS variables nor oklch.
(() => {
  const charts = [];

  document.addEventListener("DOMContentLoaded", () => {
    drawAll();
    new MutationObserver(drawAll).observe(document.documentElement, { attributeFilter: ["class"] });
    // Before the next paint, once for all replaced regions.
    document.addEventListener("htmx:oobAfterSwap", () => requestAnimationFrame(drawAll));
  });

  function drawAll() {
    for (const chart of charts.splice(0)) chart.destroy();
    for (const canvas of document.querySelectorAll("canvas[data-chart]")) {
      charts.push(new Chart(canvas, settings(JSON.parse(canvas.dataset.chart))));
    }
  }

  function settings(chart) {
    const isStacked = chart.kind === "bar";
    const last = chart.running ? chart.labels.length - 1 : -1;
    const datasets = chart.series.map((series, place) => dataset(series, place, last, isStacked));
    return {
      type: chart.kind,
      data: { labels: chart.labels, datasets: [...datasets, ...limitLine(chart)] },
      options: {
        animation: false,
        locale: document.documentElement.lang,
        maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        plugins: {
          legend: { display: false },
          tooltip: {
            filter: (item) => item.datasetIndex < chart.series.length,
            callbacks: {
              title: ([item]) => (item?.dataIndex === last ? chart.running : item?.label),
              label: (item) => ` ${item.dataset.label}: ${shown(item.raw)}${chart.series[item.datasetIndex].unit}`,
            },
          },
        },
        scales: scales(chart, isStacked),
      },
    };
  }

  function dataset(series, place, last, isStacked) {
    const color = resolve(series.color);
    const colors = series.values.map((_, index) => (index === last ? color(0.45) : color(1)));
    return {
      label: series.name,
      data: series.values,
      backgroundColor: isStacked ? colors : color(1),
      hoverBackgroundColor: isStacked ? colors : color(1),
      borderColor: color(1),
      borderWidth: isStacked ? 0 : 2,
      cubicInterpolationMode: "monotone",
      maxBarThickness: 22,
      pointRadius: series.values.length > 31 ? 0 : 2,
      // The last day is still running.
      segment: { borderDash: (line) => (line.p1DataIndex === last ? [3, 3] : undefined) },
      yAxisID: axisOf(series, place),
    };
  }

  function limitLine(chart) {
    const [first] = chart.series;
    if (first.limit === null) return [];
    const color = resolve("--pr-muted")(1);
    const line = { label: "", borderColor: color, borderDash: [6, 4], borderWidth: 1, pointRadius: 0, pointHitRadius: 0 };
    return [{ ...line, data: chart.labels.map(() => first.limit), yAxisID: axisOf(first, 0) }];
  }

  function scales(chart, isStacked) {
    const text = resolve("--pr-muted")(1);
    const grid = { color: resolve("--pr-line")(1), tickColor: "transparent" };
    const x = { stacked: isStacked, grid: { display: false }, ticks: { color: text, maxRotation: 0, maxTicksLimit: 8 } };
    const whole = { stacked: isStacked, beginAtZero: true, grid, ticks: { color: text, precision: 0, maxTicksLimit: 6 } };
    const axes = chart.series.map((series, place) => [axisOf(series, place), axis(chart, series, place, grid)]);
    return { x, ...(isStacked ? { y: whole } : Object.fromEntries(axes)) };
  }

  // All axes end at the same multiple of their limits, so that the limits are at the same height.
  function axis(chart, series, place, grid) {
    const highest = chart.series.map((one) => Math.max(0, ...one.values) / one.limit);
    const needed = Math.max(2, Math.ceil(Math.max(...highest)));
    const step = needed < 4 ? 0.5 : Math.ceil(needed / 6);
    const ticks = { color: resolve(series.color)(1), callback: (value) => `${shown(value)}${series.unit}` };
    const position = place ? "right" : "left";
    const lines = place ? { display: false } : grid;
    const range = { min: 0, max: series.limit * step * Math.ceil(needed / step) };
    return { ...range, position, grid: lines, ticks: { ...ticks, stepSize: series.limit * step } };
  }

  function axisOf(series, place) {
    return series.unit ? `y${place}` : "y";
  }

  function shown(value) {
    return value === null ? "–" : Number(value.toPrecision(3)).toLocaleString(document.documentElement.lang);
  }

  function resolve(name) {
    const value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    pixel.fillStyle = value;
    pixel.fillRect(0, 0, 1, 1);
    const [red, green, blue] = pixel.getImageData(0, 0, 1, 1).data;
    return (alpha) => `rgba(${red}, ${green}, ${blue}, ${alpha})`;
  }
})();
