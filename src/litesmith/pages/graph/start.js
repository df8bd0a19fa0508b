// The page starts here: data as it was written, made handy; then the drawing and what is around it.

class GraphData {
  constructor(text) {
    const raw = JSON.parse(text);
    this.words = raw.words;
    this.models = raw.models;
    this.targets = raw.targets;
    const { strings } = raw;
    this.kindWords = raw.kindWords;
    const tensor = (side, at) => {
      if (at < 0) return null;
      const [name, type, quant, isConst] = raw.tensors[side][at];
      return { name: strings[name], type: strings[type], quant: strings[quant], isConst: !!isConst };
    };
    this.tensorAt = tensor;
    this.ends = raw.ends;
    const range = (pair) => (pair ? pair : null);
    this.ops = raw.ops.map((ops, side) =>
      ops.map((op) => ({
        index: op.i, kind: strings[op.k], name: strings[op.n], form: strings[op.f ?? 0], options: strings[op.p ?? 0],
        macs: op.m ?? 0, bytes: op.b ?? 0, time: op.t ?? null, kernel: strings[op.r ?? 0], why: strings[op.y ?? 0],
        alone: op.e ?? null, total: op.s ?? null, noError: strings[op.w ?? 0], seen: range(op.x), covered: range(op.c),
        calls: op.q ?? [], rawBars: op.g, rawHomes: op.a, pattern: op.z === undefined ? null : strings[op.z],
        inputsAt: op.in, outputsAt: op.out,
        get inputs() { return this.inputsAt.map((at) => tensor(side, at)); },
        get outputs() { return this.outputsAt.map((at) => tensor(side, at)); },
        get bars() {
          return this.rawBars ? { low: this.rawBars[0], high: this.rawBars[1], heights: [...this.rawBars[2]].map((letter) => parseInt(letter, 36)) } : null;
        },
        get homes() {
          return this.rawHomes ? this.rawHomes.map((at) => ({ taken: at >= 0, why: strings[at >= 0 ? at : -1 - at] })) : null;
        },
      })),
    );
    let id = 0;
    const block = ([start, end, title, number, of, inside]) => ({ id: id++, start, end, title: strings[title], number, of, inside: inside.map(block) });
    this.graphs = raw.graphs.map((graph) => ({
      name: graph.name,
      rows: graph.rows.map(([kind, a, b, change, fused]) => ({
        kind, a: a < 0 ? null : a, b: b < 0 ? null : b, change: raw.changes[change] ?? "", fused: fused < 0 ? null : fused,
      })),
      edges: graph.edges,
      blocks: graph.blocks.map(block),
    }));
    this.pathRows = new Set(raw.path);
    this.worst = raw.worst;
    this.keep = raw.keep && {
      ...raw.keep,
      choices: new Set(raw.keep.choices),
      wide: new Set(raw.keep.wide),
      reasons: new Map(raw.keep.reasons.map(([number, at]) => [number, strings[at]])),
    };
    const digits = new Intl.NumberFormat(raw.lang, { maximumSignificantDigits: 3 });
    this.number = { format: (value) => digits.format(value).replace("-", "−") };
    this.whole = new Intl.NumberFormat(raw.lang, { maximumFractionDigits: 0 });
  }

  op(side, index) {
    return index === null || index === undefined || !this.ops[side] ? null : this.ops[side][index];
  }

  end(side, graph, kind, index) {
    return this.tensorAt(side, this.ends[side][graph][kind - 1][index]);
  }

  word(kind) {
    return this.kindWords[kind] ?? kind;
  }

  graphName(number) {
    return this.graphs[number].name || String(number);
  }

  // A sentence with its values.
  say(name, ...values) {
    let at = 0;
    return this.words[name].replace(/\{\w+\}/g, () => values[at++]);
  }

  scaled(value, units, step) {
    let [shown, at] = [Math.abs(value), 0];
    while (shown >= step && at < units.length - 1) [shown, at] = [shown / step, at + 1];
    return `${value < 0 ? "−" : ""}${this.number.format(shown)} ${units[at]}`.trim();
  }

  format(how, value) {
    if (how === "time") return this.scaled(value, ["µs", "ms", "s"], 1000);
    if (how === "change") return (value > 0 ? "+" : "") + this.scaled(value, ["µs", "ms", "s"], 1000);
    if (how === "bytes") return this.scaled(value, ["B", "KB", "MB", "GB"], 1000);
    if (how === "count") return this.scaled(value, ["", "K", "M", "G", "T"], 1000);
    if (how === "total") return this.whole.format(value);
    if (how === "decibels") return value >= 200 ? this.words.exact : `${this.number.format(Math.round(value * 10) / 10)} dB`;
    return this.number.format(value);
  }

  // The recipe and the command that keep some ops of the float model as they are.
  keepCommand(kept) {
    const { source, scheme, options } = this.keep;
    const numbers = [...kept.keys()].sort((x, y) => x - y);
    const wide = numbers.filter((number) => kept.get(number) === "int16");
    const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
    const step = `quantize(to=${scheme}${numbers.length ? `, keep=[${numbers.join(", ")}]` : ""})`;
    if (!wide.length) {
      const keep = numbers.length ? ` --keep ${numbers.join(",")}` : "";
      return { recipe: step, command: `litesmith quantize ${source} --to ${scheme}${keep} ${options} -o OUT.tflite` };
    }
    const names = wide.map((number) => JSON.stringify(this.keep.patterns[number]));
    const recipe = `${step} | quantize(to=int16x8, only=[${names.join(", ")}])`;
    return { recipe, command: `litesmith apply ${source} ${quote(recipe)} ${options} -o OUT.tflite` };
  }
}

class GraphView {
  constructor(root) {
    this.root = root;
    this.data = new GraphData(root.querySelector(".graph-data").textContent);
    this.panel = new Panel(root, this.data);
    this.colours = root.querySelector(".graph-colours");
    this.search = root.querySelector(".graph-search");
    this.status = root.querySelector(".graph-status");
    this.matches = [];
    this.match = -1;
  }

  start() {
    this.fillColours();
    this.fillGraphs();
    this.canvas = new GraphCanvas(this.root, this.data, {
      select: (box) => this.selected(box),
      graph: (number) => this.graphShown(number),
      search: () => this.search.focus(),
    });
    this.panel.show(this.canvas.scene, null);
    this.showLegend();
    this.listen();
    for (const button of document.querySelectorAll("[data-graph-op]"))
      button.addEventListener("click", () => this.goTo(Number(button.dataset.graphOp), this.data.models.length - 1));
    this.root.classList.add("ready");
  }

  // The page can point at an op: in a table, beside a sample.
  goTo(index, side) {
    const place = this.data.graphs[0].rows.findIndex((row) => !row.kind && row[side ? "b" : "a"] === index);
    if (place < 0) return;
    if (this.canvas.graph !== 0) this.canvas.showGraph(0);
    this.canvas.reveal(place, side);
    this.root.scrollIntoView({ block: "start" });
  }

  fillColours() {
    const has = (mode) =>
      this.data.ops.some((ops, side) => ops.some((op) => (mode.of ? mode.of(op) : 1) !== null && !(mode.pairs && this.data.models.length < 2)));
    this.modes = MODES.filter(has);
    this.colours.replaceChildren(...this.modes.map((mode) => element("option", { value: mode.name, text: this.data.words[mode.name] })));
  }

  fillGraphs() {
    const chooser = this.root.querySelector(".graph-graphs");
    chooser.closest("label").hidden = this.data.graphs.length < 2;
    chooser.replaceChildren(...this.data.graphs.map((_, number) => element("option", { value: number, text: `${number} ${this.data.graphs[number].name}` })));
    chooser.addEventListener("change", () => this.canvas.showGraph(Number(chooser.value)));
  }

  graphShown(number) {
    this.root.querySelector(".graph-graphs").value = number;
    this.panel.show(this.canvas.scene, null);
    this.showLegend();
    this.find(this.search.value, false);
  }

  selected(box) {
    this.panel.show(this.canvas.scene, box);
    this.status.textContent = box ? this.canvas.words(box).join(", ") : "";
  }

  listen() {
    const { canvas, root } = this;
    this.colours.addEventListener("change", () => {
      canvas.colour(MODES.find((mode) => mode.name === this.colours.value));
      this.showLegend();
    });
    const acts = {
      in: () => canvas.zoom(1.25),
      out: () => canvas.zoom(0.8),
      fit: () => canvas.fit(true),
      open: () => canvas.foldAll(true),
      close: () => canvas.foldAll(false),
    };
    for (const [name, act] of Object.entries(acts)) root.querySelector(`[data-act=${name}]`).addEventListener("click", act);
    const path = root.querySelector(".graph-path");
    if (path)
      path.addEventListener("change", () => {
        canvas.showsPath = path.checked;
        if (path.checked && this.data.worst !== null) this.goTo(this.data.worst, this.data.models.length - 1);
        canvas.draw();
      });
    const sides = root.querySelector(".graph-sides");
    if (sides)
      sides.addEventListener("change", () => {
        canvas.shown = sides.value === "both" ? [0, 1] : [Number(sides.value)];
        canvas.resize();
        canvas.fit();
      });
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextMatch(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        this.search.value = "";
        this.find("");
        canvas.canvas.focus();
      }
    });
  }

  // Rows whose kind, number or names hold the words.
  find(text, moves = true) {
    const wanted = text.trim().toLowerCase();
    const holds = (op) =>
      op && (`${op.index} ${op.kind}`.toLowerCase().includes(wanted) || op.name.toLowerCase().includes(wanted));
    this.matches = [];
    if (wanted)
      this.canvas.scene.rows.forEach((row, place) => {
        if (!row.kind && (holds(this.data.op(0, row.a)) || holds(this.data.op(1, row.b)))) this.matches.push(place);
      });
    this.canvas.found = new Set(this.matches);
    this.match = -1;
    this.status.textContent = wanted ? this.data.say("matches", this.matches.length) : "";
    if (moves && this.matches.length) this.nextMatch(1);
    this.canvas.draw();
  }

  nextMatch(by) {
    if (!this.matches.length) return;
    this.match = (this.match + by + this.matches.length) % this.matches.length;
    this.canvas.reveal(this.matches[this.match]);
    this.status.textContent = this.data.say("match", this.match + 1, this.matches.length);
  }

  showLegend() {
    const { words } = this.data;
    const list = this.root.querySelector(".graph-legend");
    const items = this.canvas.colouring.legend().flatMap((item) => {
      if (!item.ramp) return [this.swatch(item.colour, item.words)];
      const ramp = element("i", { class: "graph-ramp", style: `background:linear-gradient(90deg,${item.ramp.join(",")})` });
      return [element("li", {}, element("span", { text: item.ends[0] }), ramp, element("span", { text: item.ends[1] }))];
    });
    if (this.canvas.mode.down) items.push(element("li", { text: words.brightWorse }));
    if (this.data.models.some((model) => model.predicted) && ["time", "change", "kernel"].includes(this.canvas.mode.name))
      items.push(element("li", {}, element("i", { class: "graph-hatch" }), element("span", { text: words.predicted })));
    if (this.data.models.length === 2 && !this.canvas.mode.became) {
      const used = new Set(this.canvas.scene.rows.map((row) => row.change));
      for (const [change, sign] of Object.entries(BADGES))
        if (used.has(change)) items.push(element("li", {}, element("b", { class: "graph-badge", text: sign }), element("span", { text: this.data.word(change) })));
    }
    list.replaceChildren(...items);
  }

  swatch(colour, text) {
    return element("li", {}, element("i", { class: "graph-swatch", style: `background:${colour}` }), element("span", { text }));
  }
}

const view = new GraphView(document.querySelector(".graph-view"));
view.start();
requestAnimationFrame(() => requestAnimationFrame(() => (view.opened = performance.now()))); // for benches
window.litesmithGraph = view;
