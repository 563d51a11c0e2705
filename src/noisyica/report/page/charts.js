// Charts in SVG, coloured by the style sheet.

const BOX = { width: 340, height: 200, left: 50, right: 10, top: 10, bottom: 26 };

function shape(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Round numbers from low to high: about as many as asked for, and at least three.
function ticks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const first = [1, 2, 5, 10].find((k) => k * power >= raw);
  let found = [];
  for (const size of [10, 5, 2, 1, 0.5, 0.2].filter((k) => k <= first)) {
    const step = size * power;
    found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
    if (found.length >= 3) break;
  }
  return found;
}

function tickText(value, all) {
  const step = all.length > 1 ? all[1] - all[0] : Math.abs(value) || 1;
  const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)));
  if (Math.abs(value) >= 1e5) return value.toExponential(1).replace("-", "−").replace("+", "");
  return value.toFixed(digits).replace("-", "−").replace(/^−(0\.?0*)$/, "$1");
}

// Logarithms of round numbers from low to high: powers of ten, or 1, 2 and 5 times these where there are few.
function powers(low, high) {
  const factors = high - low > 2.5 ? [1] : [1, 2, 5];
  const tens = Array.from({ length: Math.ceil(high - low) + 2 }, (_, k) => Math.floor(low) + k);
  return tens.flatMap((ten) => factors.map((factor) => ten + Math.log10(factor))).filter((value) => value >= low && value <= high);
}

// An empty chart; x and y take numbers to places. With "power", the numbers of x are logarithms to base 10.
function chart(label, xs, ys, small = false, other = {}) {
  const box = { ...BOX, ...(small ? { height: 150, left: 12 } : {}), ...other };
  const [low, high] = ys[1] > ys[0] ? ys : [ys[0] - (Math.abs(ys[0]) || 1) / 2, ys[0] + (Math.abs(ys[0]) || 1) / 2];
  const [first, last] = xs[1] > xs[0] ? xs : [xs[0] - 0.5, xs[0] + 0.5];
  const levels = small || other.levels === false ? [] : ticks(low, high, 4);
  box.left = Math.max(box.left, ...levels.map((value) => 14 + 6.4 * tickText(value, levels).length));
  const svg = shape("svg", { class: "chart", viewBox: `0 0 ${box.width} ${box.height}`, role: "img", "aria-label": label });
  const x = (value) => box.left + ((value - first) / (last - first)) * (box.width - box.left - box.right);
  const y = (value) => box.height - box.bottom - ((value - low) / (high - low)) * (box.height - box.top - box.bottom);
  const base = shape("g", {});
  const marks = other.power ? powers(first, last) : ticks(first, last, 6);
  for (const value of marks) base.append(shape("text", { x: x(value), y: box.height - 8, "text-anchor": "middle" }, other.power ? tell(10 ** value, 2) : tickText(value, marks)));
  for (const value of levels) {
    base.append(shape("line", { class: "axis", x1: box.left, x2: box.width - box.right, y1: y(value), y2: y(value) }));
    base.append(shape("text", { x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value, levels)));
  }
  base.append(shape("line", { class: "axis", x1: box.left, x2: box.width - box.right, y1: y(low), y2: y(low) }));
  const under = shape("g", {});
  svg.append(under, base);
  return { svg, under, x, y, box, low, high };
}

function path(made, xs, ys, kind) {
  let text = "";
  let pen = "M";
  xs.forEach((value, k) => {
    if (ys[k] === null || ys[k] === undefined) pen = "M";
    else {
      text += `${pen}${made.x(value).toFixed(1)} ${made.y(ys[k]).toFixed(1)}`;
      pen = "L";
    }
  });
  made.svg.append(shape("path", { class: kind, d: text }));
}

function bars(made, edges, heights) {
  heights.forEach((height, k) => {
    if (!height) return;
    const [left, right] = [made.x(edges[k]), made.x(edges[k + 1])];
    const top = made.y(Math.min(height, made.high));
    made.svg.append(shape("rect", { class: "bar", x: left + 0.3, width: Math.max(right - left - 0.6, 0.4), y: top, height: Math.max(made.y(made.low) - top, 0) }));
  });
}

// A value that has a probability of its own, which is a share of the chart's height.
function stem(made, value, probability) {
  const [place, base] = [made.x(value), made.y(made.low)];
  const level = base - probability * (base - made.box.top);
  made.svg.append(shape("line", { class: "curve", x1: place, x2: place, y1: base, y2: level }));
  made.svg.append(shape("circle", { class: "dot", cx: place, cy: level, r: 4 }));
}

function tops(...lists) {
  return Math.max(...lists.flat().filter((value) => value !== null), 0) * 1.08 || 1;
}
