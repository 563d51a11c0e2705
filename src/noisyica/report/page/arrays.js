// Reading packed arrays (pack.py), and small sums.

const NARROW = window.matchMedia("(max-width: 640px)").matches;

const TYPES = { int8: Int8Array, int16: Int16Array, uint8: Uint8Array, uint32: Uint32Array, float32: Float32Array };
const LOST = { int8: -128, int16: -32768 };

function decode(packed) {
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.data), (sign) => sign.charCodeAt(0));
  const raw = new TYPES[packed.type](bytes.buffer);
  if (!packed.scale) return raw;
  const values = new Float32Array(raw.length);
  const width = raw.length / packed.shape[0];
  for (let k = 0; k < raw.length; k++) {
    const i = Math.floor(k / width);
    values[k] = raw[k] === LOST[packed.type] ? NaN : packed.offset[i] + packed.scale[i] * raw[k];
  }
  return values;
}

// Zeros and ones, of which each row of so many was packed into bits.
function decodeBits(packed, width) {
  if (!packed) return null;
  const bytes = decode(packed);
  const [rows, stride] = packed.shape;
  return Uint8Array.from({ length: rows * width }, (_, k) => {
    const column = k % width;
    return (bytes[Math.floor(k / width) * stride + (column >> 3)] >> (7 - (column & 7))) & 1;
  });
}

function rowOf(values, i, width) {
  return values.subarray(i * width, (i + 1) * width);
}

function largest(values) {
  let found = 0;
  for (const value of values) if (Math.abs(value) > found) found = Math.abs(value);
  return found;
}

// Quantiles of some of the numbers that are not missing.
function quantiles(values, shares) {
  const step = Math.max(1, Math.floor(values.length / 50000));
  const some = [];
  for (let k = 0; k < values.length; k += step) if (!Number.isNaN(values[k])) some.push(values[k]);
  some.sort((a, b) => a - b);
  return shares.map((share) => some[Math.round(share * (some.length - 1))]);
}

// Four digits, with a real minus sign.
function tell(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "missing";
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(digits - 2) : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
