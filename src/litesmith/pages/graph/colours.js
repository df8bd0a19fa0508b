// What colours say: a number on a ramp that reads alike for every eye, or one of a few kinds.

// Dark to light in even steps (viridis), told apart without red and green.
const RAMP = [
  [68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140],
  [40, 174, 128], [94, 201, 98], [173, 220, 48], [253, 231, 37],
];
// Blue is less, grey the same, orange more.
const DIVERGING = [[0, 90, 181], [96, 152, 208], [206, 212, 218], [232, 160, 84], [200, 85, 0]];
// Okabe and Ito's colours.
const KINDS = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#d55e00", "#999999"];
const NOTHING = "#8a94a033";

function mix(ramp, share) {
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const low = Math.min(Math.floor(at), ramp.length - 2);
  const part = at - low;
  return ramp[low].map((value, i) => Math.round(value + (ramp[low + 1][i] - value) * part));
}

const css = (rgb) => `rgb(${rgb[0]},${rgb[1]},${rgb[2]})`;
// Whether white letters can be read on a colour better than black ones: one of them has 4.5 to 1.
const isDark = (rgb) => {
  const [red, green, blue] = rgb.map((v) => (v <= 10 ? v / 3295 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179;
};
const hex = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));

// Everything that nodes can be coloured by. `of` is what an op has, `join` what several have.
const sum = (values) => values.reduce((total, value) => total + value, 0);
const least = (values) => Math.min(...values);

function timeChange(data, pair) {
  const [a, b] = pair.map((op) => (op ? op.time : null));
  return a === null && b === null ? null : (b ?? 0) - (a ?? 0);
}

const MODES = [
  { name: "time", of: (op) => op.time, join: sum, format: "time", ramp: RAMP, root: true },
  { name: "change", pairs: true, change: timeChange, join: sum, format: "change", ramp: DIVERGING },
  { name: "alone", pairs: true, of: (op) => op.alone, join: least, format: "decibels", ramp: RAMP, down: true },
  { name: "error", pairs: true, of: (op) => op.total, join: least, format: "decibels", ramp: RAMP, down: true },
  { name: "macs", of: (op) => op.macs || null, join: sum, format: "count", ramp: RAMP, root: true },
  { name: "bytes", of: (op) => op.bytes || null, join: sum, format: "bytes", ramp: RAMP, root: true },
  { name: "kernel", of: (op) => op.kernel || null, kinds: true },
  { name: "form", of: (op) => op.form || null, kinds: true },
  { name: "became", pairs: true, kinds: true, became: true },
];

class Colouring {
  constructor(data, mode) {
    this.data = data;
    this.mode = mode;
    this.kinds = new Map();
    this.low = Infinity;
    this.high = -Infinity;
    this.cache = new Map();
  }

  // The value of some rows of a graph on a side: a number, a kind, or null.
  value(graph, node, side) {
    const values = [];
    for (let place = node.start; place < node.end; place++) {
      const value = this.ofRow(graph, place, side);
      if (value !== null) values.push(value);
    }
    if (!values.length) return null;
    if (!this.mode.kinds) return this.mode.join(values);
    const counts = new Map();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    const [most] = [...counts].sort((x, y) => y[1] - x[1]);
    return counts.size > 1 ? { kind: most[0], mixed: true } : { kind: most[0], mixed: false };
  }

  ofRow(graph, place, side) {
    const row = graph.rows[place];
    if (row.kind || row[side ? "b" : "a"] === null) return null;
    if (this.mode.became) return row.change || null;
    const op = this.data.op(side, row[side ? "b" : "a"]);
    if (this.mode.change) return this.mode.change(this.data, [this.data.op(0, row.a), this.data.op(1, row.b)]);
    return this.mode.of(op);
  }

  // Colours for everything that is drawn; the ramp goes from the least to the most of it.
  apply(graph, drawing) {
    this.low = Infinity;
    this.high = -Infinity;
    const found = [];
    drawing.sides.forEach((part, side) => {
      for (const box of part.boxes) {
        const value = this.value(graph, box.node, side);
        found.push([box, value]);
        if (typeof value === "number" && Number.isFinite(value)) {
          this.low = Math.min(this.low, value);
          this.high = Math.max(this.high, value);
        }
        if (value && value.kind !== undefined) this.number(value.kind);
      }
    });
    for (const [box, value] of found) this.paint(box, value);
  }

  number(kind) {
    if (!this.kinds.has(kind)) this.kinds.set(kind, this.kinds.size);
    return this.kinds.get(kind);
  }

  paint(box, value) {
    const predicted = this.isPredicted(box);
    box.value = value;
    box.hatched = false;
    if (value === null) {
      box.fill = NOTHING;
      box.rgb = null;
      box.words = "";
    } else if (value.kind !== undefined) {
      box.fill = KINDS[this.number(value.kind) % KINDS.length];
      box.rgb = hex(box.fill);
      box.words = value.mixed ? `${this.data.word(value.kind)} …` : this.data.word(value.kind);
      box.hatched = predicted && this.mode.name === "kernel";
    } else {
      box.rgb = mix(this.mode.ramp, this.share(value));
      box.fill = css(box.rgb);
      box.words = this.data.format(this.mode.format, value);
      if (predicted && ["time", "change"].includes(this.mode.name)) {
        box.words = `≈ ${box.words}`;
        box.hatched = true;
      }
    }
  }

  isPredicted(box) {
    const models = this.data.models;
    if (this.mode.name === "change") return models.some((model) => model.predicted);
    return models[box.side].predicted;
  }

  share(value) {
    if (this.mode.ramp === DIVERGING) {
      const most = Math.max(Math.abs(this.low), Math.abs(this.high)) || 1;
      return (Math.sign(value) * Math.sqrt(Math.abs(value) / most)) / 2 + 0.5;
    }
    if (this.high <= this.low) return this.mode.down ? 0 : 1;
    if (this.mode.down) {
      const top = Math.min(this.high, 60); // nobody sees an error of a thousandth
      return 1 - (Math.min(value, top) - this.low) / Math.max(top - this.low, 1);
    }
    return Math.sqrt(Math.max(value, 0) / this.high);
  }

  // The legend: a ramp with its ends, or every kind with its colour and its word.
  legend() {
    if (this.mode.kinds)
      return [...this.kinds].map(([kind, at]) => ({ colour: KINDS[at % KINDS.length], words: this.data.word(kind) }));
    if (!Number.isFinite(this.low)) return [];
    const stops = [];
    const diverging = this.mode.ramp === DIVERGING;
    const most = Math.max(Math.abs(this.low), Math.abs(this.high));
    const ends = diverging ? [-most, most] : this.mode.down ? [Math.min(this.high, 60), this.low] : [0, this.high];
    for (let n = 0; n <= 8; n++) stops.push(css(mix(this.mode.ramp, n / 8)));
    return [{ ramp: stops, ends: ends.map((end) => this.data.format(this.mode.format, end)) }];
  }
}
