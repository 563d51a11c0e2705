// Pictures of the d numbers of a row. A view has an aspect (width over height), paint(canvas, values, scale, extra), and
// locate(x, y) -> {index, label} for a place given in shares of width and height (null where there is nothing).
// Numbers k with extra.off[k] are grey.

function setPixel(data, k, colours, index) {
  data[k] = colours[3 * index];
  data[k + 1] = colours[3 * index + 1];
  data[k + 2] = colours[3 * index + 2];
  data[k + 3] = 255;
}

function resize(canvas, width, height) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}

function imageView(layout) {
  const [height, width, channels] = [layout.shape[0], layout.shape[1], layout.shape[2] || 1];
  return {
    aspect: width / height,
    paint(canvas, values, scale, { off } = {}) {
      resize(canvas, width, height);
      const context = canvas.getContext("2d");
      const image = context.createImageData(width, height);
      const colours = tableOf(scale);
      for (let k = 0; k < width * height; k++) {
        if (channels === 1) {
          if (!Number.isNaN(values[k])) setPixel(image.data, 4 * k, colours, off && off[k] ? OFF : indexOf(scale, values[k]));
        } else {
          for (let c = 0; c < 3; c++) image.data[4 * k + c] = indexOf(scale, off && off[3 * k + c] ? 0 : values[3 * k + c]);
          image.data[4 * k + 3] = Number.isNaN(values[3 * k]) ? 0 : 255;
        }
      }
      context.putImageData(image, 0, 0);
    },
    locate(x, y) {
      const [column, row] = [Math.min(width - 1, Math.floor(x * width)), Math.min(height - 1, Math.floor(y * height))];
      return { index: (row * width + column) * channels, label: `pixel (${row}, ${column})` };
    },
  };
}

function lineView(layout) {
  const names = layout.names;
  const few = names.length <= 40;
  const pad = { left: 44, right: 8, top: 8, bottom: few ? 46 : 20 };
  const place = (k, width) => pad.left + ((k + 0.5) / names.length) * (width - pad.left - pad.right);
  return {
    aspect: 1.75,
    responsive: true,
    paint(canvas, values, scale, extra = {}) {
      const density = window.devicePixelRatio || 1;
      const width = canvas.clientWidth || 260;
      const height = canvas.clientHeight || width / this.aspect;
      resize(canvas, Math.round(width * density), Math.round(height * density));
      const context = canvas.getContext("2d");
      context.setTransform(density, 0, 0, density, 0, 0);
      context.clearRect(0, 0, width, height);
      const margin = 0.06 * (scale.high - scale.low);
      const [low, high] = [scale.low - margin, scale.high + margin];
      const y = (value) => pad.top + (1 - (value - low) / (high - low)) * (height - pad.top - pad.bottom);
      lineAxes(context, { width, height, pad, low, high, y, place, names, few });
      if (extra.under) drawLine(context, extra.under, (k) => place(k, width), y, theme.css("--missing"), 2.5, false);
      if (extra.off) drawLine(context, values, (k) => place(k, width), y, theme.css("--missing"), 1.6, few);
      const shown = extra.off ? values.map((value, k) => (extra.off[k] ? NaN : value)) : values;
      drawLine(context, shown, (k) => place(k, width), y, theme.css(scale.signed ? "--curve" : "--accent"), 1.6, few);
    },
    locate(x, y, canvas) {
      const width = canvas.clientWidth;
      const k = Math.floor(((x * width - pad.left) / (width - pad.left - pad.right)) * names.length);
      return k < 0 || k >= names.length ? null : { index: k, label: names[k] };
    },
  };
}

// The columns of a table below each other, with their names: those of extra.order, or those with the largest values.
const TOP = NARROW ? 10 : 20;
const ROW = 16; // pixels

function topColumns(values, count = TOP) {
  const all = Array.from(values, (_, k) => k);
  if (all.length <= count) return all;
  const size = (k) => (Number.isNaN(values[k]) ? 0 : Math.abs(values[k]));
  return all.sort((a, b) => size(b) - size(a) || a - b).slice(0, count);
}

function tableView(layout) {
  const names = layout.names;
  const pad = { right: 10, top: 4, bottom: 20 };
  const left = (width) => Math.min(150, 0.45 * width);
  const view = {
    responsive: true,
    heightOf: (count) => pad.top + pad.bottom + ROW * count,
    aspect: 300 / (pad.top + pad.bottom + ROW * Math.min(names.length, TOP)),
    paint(canvas, values, scale, extra = {}) {
      const order = extra.order || topColumns(values);
      const density = window.devicePixelRatio || 1;
      const width = canvas.clientWidth || 300;
      const height = view.heightOf(order.length);
      canvas.style.aspectRatio = "auto";
      canvas.style.height = `${height}px`;
      resize(canvas, Math.round(width * density), Math.round(height * density));
      const context = canvas.getContext("2d");
      context.setTransform(density, 0, 0, density, 0, 0);
      context.clearRect(0, 0, width, height);
      const margin = 0.04 * (scale.high - scale.low);
      const [low, high] = [scale.low - margin, scale.high + margin];
      const x = (value) => left(width) + ((value - low) / (high - low)) * (width - left(width) - pad.right);
      const off = (k) => Boolean(extra.off && extra.off[k]);
      tableAxes(context, { low, high, x, height, pad, names: order.map((k) => [names[k], off(k)]), room: left(width) - 8 });
      order.forEach((k, i) => tableBar(context, i * ROW + pad.top + ROW / 2, x, values[k], scale.signed, extra.errors && extra.errors[k], extra.under && extra.under[k], off(k)));
      canvas.order = order;
    },
    locate(x, y, canvas) {
      const i = Math.floor((y * canvas.clientHeight - pad.top) / ROW);
      const k = (canvas.order || [])[i];
      return k === undefined ? null : { index: k, label: names[k] };
    },
  };
  return view;
}

function tableAxes(context, { low, high, x, height, pad, names, room }) {
  context.font = "10.5px system-ui, sans-serif";
  context.strokeStyle = theme.css("--line");
  context.fillStyle = theme.css("--soft");
  context.lineWidth = 1;
  context.textAlign = "center";
  const levels = ticks(low, high, 3);
  for (const value of levels) {
    context.beginPath();
    context.moveTo(x(value), pad.top);
    context.lineTo(x(value), height - pad.bottom);
    context.stroke();
    context.fillText(tickText(value, levels), x(value), height - 6);
  }
  context.textAlign = "right";
  names.forEach(([name, off], i) => {
    context.fillStyle = theme.css(off ? "--soft" : "--ink");
    context.fillText(fitting(context, name, room), room + 2, i * ROW + pad.top + ROW / 2 + 4);
  });
}

// The beginning of a text that is not wider than so many pixels.
function fitting(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let length = Math.min(text.length, 60);
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

// A bar from zero for what is added or taken away, with its error; a dot for data, with another one beneath.
function tableBar(context, y, x, value, signed, error, under, off = false) {
  const dot = (at, colour, radius) => {
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x(at), y, radius, 0, 2 * Math.PI);
    context.fill();
  };
  if (under !== undefined && under !== null && !Number.isNaN(under)) dot(under, theme.css("--missing"), 5);
  if (Number.isNaN(value)) return;
  if (!signed) {
    dot(value, theme.css("--accent"), 3);
    return;
  }
  context.fillStyle = theme.css(off ? "--missing" : value < 0 ? "--accent" : "--curve");
  context.globalAlpha = 0.75;
  context.fillRect(Math.min(x(0), x(value)), y - 5, Math.abs(x(value) - x(0)), 10);
  context.globalAlpha = 1;
  if (error === undefined || Number.isNaN(error)) return;
  context.strokeStyle = theme.css(off ? "--missing" : "--ink");
  context.beginPath();
  context.moveTo(x(value - error), y);
  context.lineTo(x(value + error), y);
  context.stroke();
}

function lineAxes(context, { width, height, pad, low, high, y, place, names, few }) {
  context.font = "10px system-ui, sans-serif";
  context.fillStyle = theme.css("--soft");
  context.strokeStyle = theme.css("--line");
  context.lineWidth = 1;
  context.textAlign = "right";
  const levels = ticks(low, high, 4);
  for (const value of levels) {
    context.beginPath();
    context.moveTo(pad.left, y(value));
    context.lineTo(width - pad.right, y(value));
    context.stroke();
    context.fillText(tickText(value, levels), pad.left - 5, y(value) + 3);
  }
  const step = few ? Math.ceil((11 * names.length) / (width - pad.left - pad.right)) : Math.ceil((80 * names.length) / (width - pad.left - pad.right));
  for (let k = 0; k < names.length; k += step) {
    if (few) {
      context.save();
      context.translate(place(k, width) + 3, height - pad.bottom + 5);
      context.rotate(-Math.PI / 2);
      context.fillText(names[k].slice(0, 8), 0, 0);
      context.restore();
    } else {
      context.textAlign = k === 0 ? "left" : "center";
      context.fillText(names[k].slice(0, 14), place(k, width), height - 6);
    }
  }
}

function drawLine(context, values, x, y, colour, thickness, dots) {
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = thickness;
  context.lineJoin = context.lineCap = "round";
  context.beginPath();
  let pen = false;
  for (let k = 0; k < values.length; k++) {
    if (Number.isNaN(values[k])) pen = false;
    else if (pen) context.lineTo(x(k), y(values[k]));
    else {
      context.moveTo(x(k) - 0.1, y(values[k])); // a number between gaps is a dot
      context.lineTo(x(k), y(values[k]));
      pen = true;
    }
  }
  context.stroke();
  if (!dots) return;
  for (let k = 0; k < values.length; k++) {
    if (Number.isNaN(values[k])) continue;
    context.beginPath();
    context.arc(x(k), y(values[k]), 2.2, 0, 2 * Math.PI);
    context.fill();
  }
}

// Three orthogonal slices, in pixels of the smallest voxel's edge; extra.at is the voxel through which they go.
function volumeView(layout) {
  const [a, b, c] = layout.shape;
  const bits = decode(layout.mask);
  const index = new Int32Array(a * b * c).fill(-1);
  const inside = [];
  for (let k = 0; k < index.length; k++) {
    if (bits[k >> 3] & (128 >> (k & 7))) {
      index[k] = inside.length;
      inside.push(k);
    }
  }
  const least = Math.min(...layout.sizes);
  const pixels = layout.shape.map((count, k) => Math.max(1, Math.round((count * layout.sizes[k]) / least)));
  const panels = [[0, 1, 2], [0, 2, 1], [1, 2, 0]];
  const height = Math.max(pixels[1], pixels[2]);
  const width = panels.reduce((sum, [across]) => sum + pixels[across], 4);
  const voxel = (k) => [Math.floor(k / (b * c)), Math.floor(k / c) % b, k % c];

  // The voxel at a pixel of the mosaic, or null.
  function voxelAt(column, row, at) {
    let start = 0;
    for (const [across, up, through] of panels) {
      const top = Math.floor((height - pixels[up]) / 2);
      const [i, j] = [column - start, row - top];
      if (i >= 0 && i < pixels[across] && j >= 0 && j < pixels[up]) {
        const found = [...at];
        found[across] = Math.floor((i * layout.shape[across]) / pixels[across]);
        found[up] = layout.shape[up] - 1 - Math.floor((j * layout.shape[up]) / pixels[up]);
        return found;
      }
      start += pixels[across] + 2;
    }
    return null;
  }
  const view = {
    aspect: width / height,
    shape: layout.shape,
    at: null,
    peak(values) {
      let best = 0;
      for (let k = 0; k < values.length; k++) if (Math.abs(values[k]) > Math.abs(values[best]) || Number.isNaN(values[best])) best = k;
      return voxel(inside[best]);
    },
    middle() {
      const centre = [0, 1, 2].map((k) => inside.reduce((sum, place) => sum + voxel(place)[k], 0) / inside.length);
      return centre.map(Math.round);
    },
    millimetres(at) {
      return [0, 1, 2].map((i) => layout.affine[i][3] + at.reduce((sum, place, k) => sum + layout.affine[i][k] * place, 0));
    },
    paint(canvas, values, scale, extra = {}) {
      const at = extra.at || this.at;
      resize(canvas, width, height);
      const context = canvas.getContext("2d");
      const image = context.createImageData(width, height);
      const colours = tableOf(scale);
      for (let row = 0; row < height; row++) {
        for (let column = 0; column < width; column++) {
          const found = voxelAt(column, row, at);
          const k = found ? index[(found[0] * b + found[1]) * c + found[2]] : -1;
          if (k >= 0 && !Number.isNaN(values[k])) setPixel(image.data, 4 * (row * width + column), colours, extra.off && extra.off[k] ? OFF : indexOf(scale, values[k]));
        }
      }
      context.putImageData(image, 0, 0);
    },
    locate(x, y) {
      const found = voxelAt(Math.floor(x * width), Math.floor(y * height), this.at);
      const k = found ? index[(found[0] * b + found[1]) * c + found[2]] : -1;
      return k < 0 ? null : { index: k, label: `voxel (${found.join(", ")})` };
    },
  };
  view.at = view.middle();
  return view;
}
