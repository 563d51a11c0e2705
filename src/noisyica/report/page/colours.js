// Colour maps: tables of 256 colours between evenly spaced stops. All are perceptually ordered; signed ones have zero in the middle.

const STOPS = {
  grey: ["000000", "ffffff"],
  ink: ["ffffff", "000000"],
  viridis: ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"],
  signed: ["053061", "2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b", "67001f"],
  night: ["9eb0ff", "6d9ce0", "4281b4", "285a7c", "172f40", "11100f", "321105", "5e210b", "965145", "cc8a7e", "ffcfc4"],
};
const OFF = 256; // the place of the grey for entries that are probably zero, after the other colours
const tables = {};

function table(name) {
  if (tables[name]) return tables[name];
  const numbers = (hex) => [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16));
  const stops = STOPS[name].map(numbers);
  const colours = new Uint8ClampedArray(257 * 3);
  colours.set(numbers(name === "night" ? "3a3a3a" : "d6d6d6"), 3 * OFF);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1);
    const k = Math.min(Math.floor(place), stops.length - 2);
    for (let c = 0; c < 3; c++) colours[3 * i + c] = stops[k][c] + (place - k) * (stops[k + 1][c] - stops[k][c]);
  }
  return (tables[name] = colours);
}

const theme = {
  media: window.matchMedia("(prefers-color-scheme: dark)"),
  printing: false,
  plain: "grey",
  night: true, // whether signed colours may be dark in the middle
  get dark() {
    return this.media.matches && !this.printing;
  },
  css(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  },
};

// A scale: {low, high, signed}.
function tableOf(scale) {
  return table(scale.signed ? (theme.dark && theme.night ? "night" : "signed") : theme.plain);
}

function indexOf(scale, value) {
  return Math.max(0, Math.min(255, Math.round((255 * (value - scale.low)) / (scale.high - scale.low))));
}

// A legend of a scale.
function ramp(scale, words) {
  const canvas = make("canvas", { width: 256, height: 1, "aria-hidden": "true" });
  const [low, high] = [make("span"), make("span")];
  const drawing = () => {
    low.textContent = `${words} ${tell(scale.low, 3)}`;
    high.textContent = tell(scale.high, 3);
    const context = canvas.getContext("2d");
    const image = context.createImageData(256, 1);
    const colours = tableOf(scale);
    for (let i = 0; i < 256; i++) image.data.set([colours[3 * i], colours[3 * i + 1], colours[3 * i + 2], 255], 4 * i);
    context.putImageData(image, 0, 0);
  };
  pictures.add(drawing);
  const legend = make("span", { class: "ramp" }, low, canvas, high);
  legend.redraw = drawing;
  return legend;
}

// Everything drawn on a canvas, to be drawn again when the colours change.
const pictures = {
  all: [],
  add(drawing) {
    this.all.push(drawing);
    drawing();
  },
  redraw() {
    for (const drawing of this.all) drawing();
  },
};
