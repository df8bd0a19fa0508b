// The words around the drawing: search, colours, what is known of an op, what to keep float.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    if (key === "text") made.textContent = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

class Panel {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.body = root.querySelector(".graph-panel");
    this.kept = new Map(data.keep ? data.keep.kept.map((number) => [number, "float"]) : []);
    this.start = new Map(this.kept);
  }

  show(graph, box) {
    if (!box) return void this.body.replaceChildren(element("p", { class: "hint", text: this.data.words.pick }), this.keepBox());
    if (box.node.block) return void this.showBlock(graph, box);
    const row = graph.rows[box.node.start];
    if (row.kind) return void this.showEnd(row, box);
    const ops = [this.data.op(0, row.a), this.data.op(1, row.b)];
    const own = ops[box.side] ?? ops[0] ?? ops[1];
    const parts = [
      element("h3", { text: `${own.index} ${own.kind}` }),
      this.name(own.name),
      this.change(graph, row),
      this.calls(own),
      this.table(row, ops),
      this.histogram(ops),
      this.ranges(ops[1] ?? ops[0]),
      this.tensors(ops),
      this.homes(ops),
      this.choice(row),
      this.keepBox(),
    ];
    this.body.replaceChildren(...parts.filter(Boolean));
  }

  // Converters join the names of all that went into an op; the first is its own.
  name(text, kind = "p") {
    const [own] = text.split(";");
    return element(kind, { class: "graph-name", title: text, text: own });
  }

  showBlock(graph, box) {
    const { words } = this.data;
    const rows = graph.rows.slice(box.node.start, box.node.end).filter((row) => !row.kind);
    const sides = this.data.models.map((_, side) => rows.map((row) => this.data.op(side, row[side ? "b" : "a"])).filter(Boolean));
    const total = (ops, of) => ops.reduce((sum, op) => sum + (of(op) ?? 0), 0);
    const lines = [
      [words.opsTitle, sides.map((ops) => this.data.format("total", ops.length))],
      [words.time, sides.map((ops, side) => this.time(total(ops, (op) => op.time), side))],
      [words.macs, sides.map((ops) => this.data.format("count", total(ops, (op) => op.macs)))],
      [words.bytes, sides.map((ops) => this.data.format("bytes", total(ops, (op) => op.bytes)))],
    ];
    this.body.replaceChildren(element("h3", { text: titleOf(this.data, box.node.block) }), this.facts(lines), this.keepBox());
  }

  showEnd(row, box) {
    const side = box.side;
    const tensor = this.data.end(side, view.canvas.graph, row.kind, row[side ? "b" : "a"]);
    const { words } = this.data;
    const lines = [[words.type, [tensor.type]], [words.quant, [tensor.quant || words.none]]];
    this.body.replaceChildren(
      element("h3", { text: words[row.kind === 1 ? "input" : "output"] }),
      this.name(tensor.name),
      this.facts(lines, false),
      this.keepBox(),
    );
  }

  change(graph, row) {
    if (!row.change) return null;
    const { words } = this.data;
    let text = this.data.word(row.change);
    if (row.fused !== null) {
      const into = this.data.op(1, graph.rows[row.fused].b);
      text = this.data.say("fusedInto", `${into.index} ${into.kind}`);
    }
    const keep = this.data.keep;
    const reason = keep && view.canvas.graph === 0 && row.a !== null ? keep.reasons.get(row.a) : null;
    const kept = keep && row.a !== null && keep.kept.includes(row.a) && view.canvas.graph === 0;
    if (reason) text += `: ${reason}`;
    else if (kept) text += `: ${words.keptByRecipe}`;
    return element("p", { class: "graph-change", text });
  }

  calls(op) {
    if (!op.calls.length) return null;
    const buttons = op.calls.map((number) => {
      const made = element("button", { type: "button", class: "graph-button", text: this.data.say("open", this.data.graphName(number)) });
      made.addEventListener("click", () => view.canvas.showGraph(number));
      return made;
    });
    return element("p", {}, ...buttons);
  }

  time(us, side) {
    if (us === null) return "–";
    return (this.data.models[side].predicted ? "≈ " : "") + this.data.format("time", us);
  }

  table(row, ops) {
    const { words, data } = { words: this.data.words, data: this.data };
    const sides = data.models.map((_, side) => ops[side]);
    const each = (of) => sides.map((op, side) => (op ? of(op, side) : "–"));
    const lines = [
      [words.time, each((op, side) => (op.time === null ? op.why || "–" : this.time(op.time, side)))],
      [words.kernel, each((op, side) => (op.kernel ? (data.models[side].predicted ? "≈ " : "") + data.word(op.kernel) : "–"))],
      [words.form, each((op) => op.form)],
      [words.macs, each((op) => (op.macs ? data.format("count", op.macs) : "–"))],
      [words.bytes, each((op) => (op.bytes ? data.format("bytes", op.bytes) : "–"))],
      [words.options, each((op) => op.options || "–")],
    ];
    if (ops[0] && ops[1] && ops[0].time !== null && ops[1].time !== null)
      lines.splice(1, 0, [words.change, ["", data.format("change", ops[1].time - ops[0].time)]]);
    const own = ops[1];
    if (data.models.length === 2 && own) {
      const told = (value) => (value === null ? own.noError || "–" : data.format("decibels", value));
      lines.splice(2, 0, [words.alone, ["", told(own.alone)]], [words.error, ["", own.total === null ? "–" : told(own.total)]]);
    }
    return this.facts(lines);
  }

  facts(lines, heads = this.data.models.length === 2) {
    const head = element("tr", {}, element("td"), ..."AB".split("").map((name) => element("th", { scope: "col", text: name })));
    const rows = lines.map(([name, cells]) =>
      element("tr", {}, element("th", { scope: "row", text: name }), ...cells.map((cell) => element("td", { text: cell }))),
    );
    return element("table", { class: "graph-facts" }, heads ? element("thead", {}, head) : null, element("tbody", {}, ...rows));
  }

  histogram(ops) {
    const sides = [0, 1].filter((side) => ops[side] && ops[side].bars);
    if (!sides.length) return null;
    const first = ops[sides[0]].bars;
    const [width, height] = [300, 84];
    const most = Math.max(...sides.flatMap((side) => ops[side].bars.heights));
    const shape = (name, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      return made;
    };
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "graph-bars", role: "img", "aria-label": this.data.words.weights });
    for (const side of sides) {
      const { heights } = ops[side].bars;
      const step = width / heights.length;
      if (side === 0 || sides.length === 1)
        heights.forEach((value, at) => {
          const tall = (value / most) * (height - 4);
          svg.append(shape("rect", { x: at * step, y: height - tall, width: step - 0.6, height: tall, class: "bars-a" }));
        });
      else {
        const points = heights.flatMap((value, at) => {
          const y = height - (value / most) * (height - 4);
          return [`${at * step},${y}`, `${(at + 1) * step},${y}`];
        });
        svg.append(shape("polyline", { points: points.join(" "), class: "bars-b" }));
      }
    }
    const ends = element("p", { class: "graph-ends" }, element("span", { text: this.data.format("number", first.low) }), element("span", { text: this.data.format("number", first.high) }));
    const key = sides.length === 2 ? element("span", { class: "hint", text: this.data.words.barKey }) : null;
    return element("div", {}, element("h4", { text: this.data.words.weights }), key, svg, ends);
  }

  ranges(op) {
    if (!op || (!op.seen && !op.covered)) return null;
    const { words, data } = { words: this.data.words, data: this.data };
    const told = (range) => (range ? data.say("range", data.format("number", range[0]), data.format("number", range[1])) : "–");
    const lines = [[words.seen, [told(op.seen)]], [words.covered, [told(op.covered)]]];
    return element("div", {}, element("h4", { text: words.ranges }), this.facts(lines, false));
  }

  tensors(ops) {
    const parts = [];
    this.data.models.forEach((_, side) => {
      const op = ops[side];
      if (!op) return;
      const items = [...op.inputs.map((t) => [this.data.words.reads, t]), ...op.outputs.map((t) => [this.data.words.writes, t])]
        .filter(([, tensor]) => tensor)
        .map(([how, tensor]) =>
          element("li", {}, element("b", { text: `${how} ${tensor.type}` }), element("span", { text: [tensor.quant, tensor.isConst ? this.data.words.constant : ""].filter(Boolean).join("; ") }), this.name(tensor.name, "span")),
        );
      const title = this.data.models.length === 2 ? `${this.data.words.tensors}: ${"AB"[side]}` : this.data.words.tensors;
      parts.push(element("details", { class: "graph-tensors" }, element("summary", { text: title }), element("ul", {}, ...items)));
    });
    return parts.length ? element("div", {}, ...parts) : null;
  }

  homes(ops) {
    const sides = this.data.models.map((_, side) => side).filter((side) => ops[side] && ops[side].homes);
    if (!sides.length) return null;
    const lines = this.data.targets.map((target, at) => {
      const cells = sides.map((side) => {
        const { taken, why } = ops[side].homes[at];
        return element("td", { title: why }, element("b", { text: taken ? "✓ " : "✗ " }), taken ? this.data.words.taken : why);
      });
      return element("tr", {}, element("th", { scope: "row", text: target }), ...cells);
    });
    const head = element("tr", {}, element("td"), ...sides.map((side) => element("th", { scope: "col", text: "AB"[side] })));
    const table = element("table", { class: "graph-facts" }, this.data.models.length === 2 ? element("thead", {}, head) : null, element("tbody", {}, ...lines));
    return element("details", { class: "graph-homes" }, element("summary", { text: this.data.words.homes }), table);
  }

  // The switch, and what to type for all that was switched.

  choice(row) {
    const { keep, words } = this.data;
    if (!keep || row.a === null || view.canvas.graph !== 0) return null;
    if (!keep.choices.has(row.a)) return null;
    const group = element("fieldset", { class: "graph-choice" }, element("legend", { text: words.keep }));
    const ways = [["", this.data.say("as", keep.scheme)], ["float", words.inFloat]];
    if (keep.wide.has(row.a)) ways.push(["int16", words.inInt16]);
    for (const [way, text] of ways) {
      const input = element("input", { type: "radio", name: "keep", value: way });
      input.checked = (this.kept.get(row.a) ?? "") === way;
      input.addEventListener("change", () => {
        if (way) this.kept.set(row.a, way);
        else this.kept.delete(row.a);
        this.body.querySelector(".graph-keep").replaceWith(this.keepBox());
      });
      group.append(element("label", {}, input, text));
    }
    return group;
  }

  keepBox() {
    const { keep, words } = this.data;
    const box = element("div", { class: "graph-keep" });
    const isSame = this.kept.size === this.start.size && [...this.kept].every(([number, way]) => this.start.get(number) === way);
    if (!keep || isSame) return box;
    const { recipe, command } = this.data.keepCommand(this.kept);
    box.append(
      element("h4", { text: this.data.say("keeps", this.kept.size) }),
      this.copied(words.recipe, recipe, "graph-recipe"),
      this.copied(words.command, command, "graph-command"),
    );
    return box;
  }

  copied(title, text, name) {
    const { words } = this.data;
    const code = element("code", { class: name, text });
    const button = element("button", { type: "button", class: "graph-button", text: words.copy });
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = words.copied;
      } catch {
        getSelection().selectAllChildren(code); // a page inside another may not copy by itself
      }
    });
    return element("div", {}, element("p", { class: "graph-copy" }, element("b", { text: title }), button), element("pre", { tabindex: "0" }, code));
  }
}
