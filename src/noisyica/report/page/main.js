// Reads what the page holds, and fills it.

const VIEWS = { lines: lineView, table: tableView, images: imageView, volume: volumeView, mesh: meshView };

function whenIdle(action, delay) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, delay);
  };
}

function inSight(canvas) {
  const { top, bottom } = canvas.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
}

function begin(report) {
  const kind = report.layout.kind;
  if (kind === "mesh") Object.assign(theme, { plain: "viridis", night: false }); // shading needs light colours
  const components = decode(report.components.values);
  const page = {
    kind,
    flat: kind === "lines" || kind === "table", // numbers are shown by their places, not by colours
    view: VIEWS[kind](report.layout),
    components,
    errors: decode(report.components.errors),
    mean: decode(report.components.mean),
    off: decodeBits(report.components.off, report.components.values.shape[1]), // entries that are probably zero
    shown: report.components.values.shape[0],
    d: report.components.values.shape[1],
    canvases: [],
    show: null,
  };
  const drawAll = () => page.canvases.forEach((canvas) => canvas.redraw());
  const drawRest = whenIdle(() => page.canvases.filter((canvas) => !inSight(canvas)).forEach((canvas) => canvas.redraw()), 250);
  let waiting = false;
  page.turned = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      page.canvases.filter(inSight).forEach((canvas) => canvas.redraw());
      drawRest();
    });
  };
  summarySection(report);
  mapSection(report, page);
  componentSection(report, page);
  const explorer = explorerSection(report, page);
  classSection(report);
  coefficientSection(report);
  residualSection(report, page);
  likelihoodSection(report, page);
  convergenceSection(report);
  dataSections(report);
  pictures.add(drawAll);
  theme.media.addEventListener("change", () => pictures.redraw());
  for (const [event, printing] of [["beforeprint", true], ["afterprint", false]]) {
    window.addEventListener(event, () => {
      theme.printing = printing;
      if (printing) document.querySelectorAll("section > details").forEach((part) => (part.open = true));
      pictures.redraw();
    });
  }
  if (page.view.responsive) new ResizeObserver(whenIdle(drawAll, 100)).observe(document.querySelector("main"));
  window.noisyica = explorer;
}

begin(JSON.parse(document.getElementById("payload").textContent));
