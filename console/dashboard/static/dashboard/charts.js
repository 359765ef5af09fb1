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
    const datasets = chart.series.map((series) => dataset(series, last, isStacked));
    return {
      type: chart.kind,
      data: { labels: chart.labels, datasets: [...datasets, ...limitLine(chart)] },
      options: {
        animation: false,
        locale: document.documentElement.lang,
        maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        ...(chart.links.length ? { onClick: (_event, [point]) => point && location.assign(chart.links[point.index]) } : {}),
        onHover: (event, points) => { event.native.target.style.cursor = chart.links.length && points.length ? "pointer" : ""; },
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

  function dataset(series, last, isStacked) {
    const color = resolve(series.color);
    const colors = series.values.map((_, index) => (index === last ? color(0.45) : color(1)));
    return {
      label: series.name,
      data: series.values,
      backgroundColor: isStacked ? colors : color(1),
      hoverBackgroundColor: isStacked ? colors : color(1),
      borderColor: color(1),
      borderWidth: isStacked ? 0 : 2,
      maxBarThickness: 22,
      pointRadius: series.values.length > 31 ? 0 : 2,
      // The last day is still running.
      segment: { borderDash: (line) => (line.p1DataIndex === last ? [3, 3] : undefined) },
    };
  }

  function limitLine(chart) {
    const [first] = chart.series;
    if (!first.hasLimitLine) return [];
    const color = resolve("--pr-muted")(1);
    const line = { label: "", borderColor: color, borderDash: [6, 4], borderWidth: 1, pointRadius: 0, pointHitRadius: 0 };
    return [{ ...line, data: chart.labels.map(() => first.limit) }];
  }

  function scales(chart, isStacked) {
    const [first] = chart.series;
    const color = resolve("--pr-muted")(1);
    const grid = { color: resolve("--pr-line")(1), tickColor: "transparent" };
    const x = { stacked: isStacked, grid: { display: false }, ticks: { color, maxRotation: 0, maxTicksLimit: 8 } };
    const whole = { color, precision: 0, maxTicksLimit: 6 };
    const rates = { color, maxTicksLimit: 4, callback: (value) => `${shown(value)}${first.unit}` };
    if (first.limit === null) return { x, y: { stacked: isStacked, beginAtZero: true, grid, ticks: whole } };
    return { x, y: { min: 0, suggestedMax: first.top, grid, ticks: rates } };
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
