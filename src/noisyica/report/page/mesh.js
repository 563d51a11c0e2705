// A mesh, drawn in software: for the direction it is seen from, which triangle (and where in it) each pixel shows is found once,
// with a depth buffer; each picture then only looks its colours up. All meshes of the page turn together.

function meshView(layout) {
  const points = decode(layout.vertices);
  const faces = decode(layout.faces);
  const count = points.length / 3;
  const normals = vertexNormals(points, faces, count);
  const [width, height] = [360, 270];
  const seen = { face: new Int32Array(width * height), u: new Float32Array(width * height), v: new Float32Array(width * height), shade: new Float32Array(width * height) };
  const start = { yaw: 0.35, pitch: 0.25 };
  const view = {
    aspect: width / height,
    turning: { ...start },
    turn(yaw, pitch) {
      this.turning.yaw += yaw;
      this.turning.pitch = Math.max(-1.57, Math.min(1.57, this.turning.pitch + pitch));
      this.look();
    },
    reset() {
      this.turning = { ...start };
      this.look();
    },
    look() {
      rasterise(points, normals, faces, this.turning, seen, width, height);
    },
    paint(canvas, values, scale, { off } = {}) {
      resize(canvas, width, height);
      const context = canvas.getContext("2d");
      const image = context.createImageData(width, height);
      const colours = tableOf(scale);
      for (let k = 0; k < width * height; k++) {
        const face = seen.face[k];
        if (face < 0) continue;
        const [u, v, shade] = [seen.u[k], seen.v[k], seen.shade[k]];
        const at = (numbers) => (1 - u - v) * numbers[faces[3 * face]] + u * numbers[faces[3 * face + 1]] + v * numbers[faces[3 * face + 2]];
        const value = at(values);
        const index = Number.isNaN(value) ? -1 : 3 * (off && at(off) > 0.5 ? OFF : indexOf(scale, value));
        for (let c = 0; c < 3; c++) image.data[4 * k + c] = shade * (index < 0 ? 128 : colours[index + c]);
        image.data[4 * k + 3] = 255;
      }
      context.putImageData(image, 0, 0);
    },
    locate(x, y) {
      const k = Math.floor(y * height) * width + Math.floor(x * width);
      const face = seen.face[k];
      if (face === undefined || face < 0) return null;
      const weights = [1 - seen.u[k] - seen.v[k], seen.u[k], seen.v[k]];
      const index = faces[3 * face + weights.indexOf(Math.max(...weights))];
      return { index, label: `vertex ${index}` };
    },
  };
  view.look();
  return view;
}

function vertexNormals(points, faces, count) {
  const normals = new Float32Array(3 * count);
  for (let f = 0; f < faces.length; f += 3) {
    const [a, b, c] = [3 * faces[f], 3 * faces[f + 1], 3 * faces[f + 2]];
    const e = [0, 1, 2].map((k) => points[b + k] - points[a + k]);
    const g = [0, 1, 2].map((k) => points[c + k] - points[a + k]);
    const normal = [e[1] * g[2] - e[2] * g[1], e[2] * g[0] - e[0] * g[2], e[0] * g[1] - e[1] * g[0]];
    for (const corner of [a, b, c]) for (let k = 0; k < 3; k++) normals[corner + k] += normal[k];
  }
  for (let i = 0; i < 3 * count; i += 3) {
    const length = Math.hypot(normals[i], normals[i + 1], normals[i + 2]) || 1;
    for (let k = 0; k < 3; k++) normals[i + k] /= length;
  }
  return normals;
}

// x to the right, y up, z towards the viewer: first turned about y, then about x.
function turned(vectors, { yaw, pitch }) {
  const [c, s, p, q] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
  const found = new Float32Array(vectors.length);
  for (let i = 0; i < vectors.length; i += 3) {
    const x = c * vectors[i] + s * vectors[i + 2];
    const z = c * vectors[i + 2] - s * vectors[i];
    found[i] = x;
    found[i + 1] = p * vectors[i + 1] - q * z;
    found[i + 2] = q * vectors[i + 1] + p * z;
  }
  return found;
}

function rasterise(points, normals, faces, turning, seen, width, height) {
  const at = turned(points, turning);
  const facing = turned(normals, turning);
  const depth = new Float32Array(width * height).fill(-Infinity);
  const size = 0.47 * width;
  seen.face.fill(-1);
  const light = new Float32Array(at.length / 3);
  for (let i = 0; i < light.length; i++) {
    at[3 * i] = width / 2 + size * at[3 * i];
    at[3 * i + 1] = height / 2 - size * at[3 * i + 1];
    light[i] = 0.42 + 0.58 * Math.abs(0.3 * facing[3 * i] + 0.5 * facing[3 * i + 1] + 0.81 * facing[3 * i + 2]);
  }
  for (let face = 0; face < faces.length / 3; face++) {
    const [i, j, k] = [faces[3 * face], faces[3 * face + 1], faces[3 * face + 2]];
    const [ax, ay, bx, by, cx, cy] = [at[3 * i], at[3 * i + 1], at[3 * j], at[3 * j + 1], at[3 * k], at[3 * k + 1]];
    const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
    if (area === 0) continue;
    const [left, right] = [Math.max(0, Math.ceil(Math.min(ax, bx, cx) - 0.5)), Math.min(width - 1, Math.floor(Math.max(ax, bx, cx) - 0.5))];
    const [top, bottom] = [Math.max(0, Math.ceil(Math.min(ay, by, cy) - 0.5)), Math.min(height - 1, Math.floor(Math.max(ay, by, cy) - 0.5))];
    for (let y = top; y <= bottom; y++) {
      for (let x = left; x <= right; x++) {
        const [px, py] = [x + 0.5 - ax, y + 0.5 - ay];
        const u = (px * (cy - ay) - py * (cx - ax)) / area;
        const v = (py * (bx - ax) - px * (by - ay)) / area;
        if (u < -1e-4 || v < -1e-4 || u + v > 1 + 1e-4) continue;
        const w = 1 - u - v;
        const z = w * at[3 * i + 2] + u * at[3 * j + 2] + v * at[3 * k + 2];
        const pixel = y * width + x;
        if (z <= depth[pixel]) continue;
        depth[pixel] = z;
        seen.face[pixel] = face;
        seen.u[pixel] = u;
        seen.v[pixel] = v;
        seen.shade[pixel] = w * light[i] + u * light[j] + v * light[k];
      }
    }
  }
}

// Turning by mouse, finger and arrow keys.
function makeTurnable(canvas, view, redraw) {
  canvas.tabIndex = 0;
  let last = null;
  canvas.addEventListener("pointerdown", (event) => {
    last = [event.clientX, event.clientY];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    view.turn((event.clientX - last[0]) * 0.012, (event.clientY - last[1]) * 0.012);
    last = [event.clientX, event.clientY];
    redraw();
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (last = null));
  canvas.addEventListener("dblclick", () => {
    view.reset();
    redraw();
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15] }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    view.turn(...step);
    redraw();
  });
}
