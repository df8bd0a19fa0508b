// The drawing on its canvas: two panes that move together, only what can be seen, a small map.

const LEAST_SCALE = 0.01;
const MOST_SCALE = 3;
const TEXT_SCALE = 0.42; // below it letters cannot be read, and are left out
const BADGES = { added: "+", dropped: "−", fused: "→", "kept float": "F", changed: "~" };

class GraphCanvas {
  constructor(root, data, events) {
    this.data = data;
    this.events = events;
    this.canvas = root.querySelector(".graph-canvas");
    this.map = root.querySelector(".graph-map");
    this.context = this.canvas.getContext("2d");
    this.camera = { x: 0, y: 0, scale: 1 };
    this.shown = data.models.length === 2 ? [0, 1] : [0];
    this.graph = 0;
    this.open = data.graphs.map((graph) => startOpen(graph));
    this.selected = null;
    this.found = new Set();
    this.showsPath = false;
    this.hover = null;
    this.labels = new Map();
    this.frames = 0;
    this.mode = MODES[0];
    this.readTheme();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.readTheme();
      this.drawMap();
      this.draw();
    });
    this.lay();
    this.resize();
    this.fit();
  }

  get scene() {
    return this.data.graphs[this.graph];
  }

  readTheme() {
    const style = getComputedStyle(document.documentElement);
    const names = ["card", "paper", "ink", "soft", "line", "accent", "bad"];
    this.theme = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  // Layout and colours.

  lay() {
    this.drawing = layOut(this.scene, this.open[this.graph], this.data.models.length);
    this.colour();
  }

  colour(mode = this.mode) {
    this.mode = mode;
    this.colouring = new Colouring(this.data, mode);
    this.colouring.apply(this.scene, this.drawing);
    this.markPath();
    this.drawMap();
    this.draw();
  }

  markPath() {
    const rows = this.graph === 0 ? this.data.pathRows : new Set();
    for (const box of this.drawing.sides.at(-1).boxes) {
      box.onPath = false;
      for (let place = box.node.start; place < box.node.end && !box.onPath; place++)
        box.onPath = rows.has(place);
    }
  }

  showGraph(number) {
    this.graph = number;
    this.selected = null;
    this.lay();
    this.fit();
    this.events.graph(number);
  }

  toggle(block, isOpen = !this.open[this.graph].has(block.id)) {
    const anchor = this.boxOf(block.start);
    const before = anchor ? this.toScreen(anchor).y : 0;
    if (isOpen) this.open[this.graph].add(block.id);
    else this.open[this.graph].delete(block.id);
    this.lay();
    const after = this.boxOf(block.start);
    if (anchor && after) this.camera.y += (this.toScreen(after).y - before) / this.camera.scale;
    this.draw();
  }

  foldAll(isOpen) {
    const own = this.open[this.graph];
    own.clear();
    if (isOpen) eachBlock(this.scene.blocks, (block) => own.add(block.id));
    this.lay();
    this.fit();
  }

  // The box that shows a row, on the side that has it.
  boxOf(place, side = null) {
    for (const part of side === null ? this.shown : [side])
      for (const box of this.drawing.sides[part].boxes)
        if (box.node.start <= place && place < box.node.end) return box;
    return null;
  }

  // Opens what hides a row, selects it and moves there.
  reveal(place, side = null) {
    let closed = false;
    const walk = (blocks) => {
      for (const block of blocks)
        if (block.start <= place && place < block.end) {
          if (!this.open[this.graph].has(block.id)) {
            this.open[this.graph].add(block.id);
            closed = true;
          }
          walk(block.inside);
        }
    };
    walk(this.scene.blocks);
    if (closed) this.lay();
    const box = this.boxOf(place, side) ?? this.boxOf(place);
    if (!box) return;
    this.select(box);
    this.moveTo(box);
  }

  select(box) {
    this.selected = box ? { start: box.node.start, end: box.node.end, side: box.side } : null;
    this.events.select(box, this.selected);
    this.draw();
  }

  // The camera.

  resize() {
    const place = this.canvas.parentElement.getBoundingClientRect();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = Math.max(place.width, 60);
    this.height = Math.max(place.height, 60);
    this.ratio = ratio;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.drawMap();
    this.draw();
  }

  pane(side) {
    const width = this.width / this.shown.length;
    const left = this.shown.indexOf(side) * width;
    return { left, width, middle: left + width / 2 };
  }

  toScreen(box) {
    const { x, y, scale } = this.camera;
    return { x: this.pane(box.side).middle + (box.x - x) * scale, y: this.height / 2 + (box.y - y) * scale };
  }

  // The top of the graph at a size that can be read, or all of it.
  fit(whole = false) {
    const sides = this.shown.map((side) => this.drawing.sides[side]);
    const widest = Math.max(...sides.map((part) => part.right - part.left), NODE.width) + 90;
    const pane = this.width / this.shown.length;
    const all = Math.min(pane / widest, (this.height - 44) / (this.drawing.height + 20));
    const scale = whole ? all : Math.max(Math.min(pane / widest, 1), all, 0.62);
    this.camera.scale = Math.min(Math.max(scale, LEAST_SCALE), whole ? MOST_SCALE : 1);
    this.camera.x = sides.length ? (Math.min(...sides.map((s) => s.left)) + Math.max(...sides.map((s) => s.right))) / 2 : 0;
    const room = this.height / this.camera.scale;
    const names = this.data.models.length < 2 ? 24 : 44; // the height that models' names take
    const middle = this.drawing.height / 2 - names / 2 / this.camera.scale;
    const top = room / 2 - names / this.camera.scale;
    this.camera.y = whole || room > this.drawing.height + names / this.camera.scale ? middle : top;
    this.draw();
  }

  // Into the middle by height; sideways no further than needed, since both panes move.
  moveTo(box) {
    if (this.camera.scale < 0.6) this.camera.scale = 0.9;
    this.camera.y = box.y + NODE.height / 2;
    const room = this.pane(box.side).width / 2 / this.camera.scale - box.width / 2 - 12;
    const off = box.x + box.width / 2 - this.camera.x;
    if (Math.abs(off) > room) this.camera.x += off - Math.sign(off) * Math.max(room, 0);
    this.draw();
  }

  pan(dx, dy) {
    this.camera.x -= dx / this.camera.scale;
    this.camera.y -= dy / this.camera.scale;
    this.camera.y = Math.min(Math.max(this.camera.y, 0), this.drawing.height);
    this.draw();
  }

  zoom(factor, x = this.pane(this.shown[0]).middle, y = this.height / 2) {
    const before = this.camera.scale;
    const after = Math.min(Math.max(before * factor, LEAST_SCALE), MOST_SCALE);
    const pane = this.shown.map((side) => this.pane(side)).find((one) => x < one.left + one.width) ?? this.pane(this.shown[0]);
    this.camera.x += (x - pane.middle) * (1 / before - 1 / after);
    this.camera.y += (y - this.height / 2) * (1 / before - 1 / after);
    this.camera.scale = after;
    this.draw();
  }

  // Drawing: at most once a frame.

  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  paint() {
    const { context } = this;
    if (!this.width) return;
    this.frames += 1;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    for (const side of this.shown) this.paintSide(side);
    this.paintMapFrame();
  }

  paintSide(side) {
    const { context, camera, height } = this;
    const pane = this.pane(side);
    const part = this.drawing.sides[side];
    context.save();
    context.beginPath();
    context.rect(pane.left, 0, pane.width, height);
    context.clip();
    const top = camera.y - height / 2 / camera.scale - NODE.height;
    const bottom = camera.y + height / 2 / camera.scale;
    context.translate(pane.middle, height / 2);
    context.scale(camera.scale, camera.scale);
    context.translate(-camera.x, -camera.y);
    const seen = visibleBoxes(part.boxes, top, bottom);
    this.paintFrames(part, top, bottom);
    this.paintEdges(part, top, bottom);
    this.paintTitles(part, top, bottom);
    for (const box of seen) this.paintBox(box);
    context.restore();
    this.paintName(side, pane);
  }

  paintName(side, pane) {
    const { context, theme } = this;
    if (this.data.models.length < 2) return;
    if (pane.left > 0) {
      context.fillStyle = theme.line;
      context.fillRect(pane.left - 0.5, 0, 1, this.height);
    }
    context.font = "600 13px system-ui, sans-serif";
    context.textBaseline = "middle";
    const text = this.shorten(`${"AB"[side]}  ${this.data.models[side].name}`, pane.width - 30, "600 13px");
    const width = context.measureText(text).width + 16;
    context.fillStyle = theme.card;
    context.globalAlpha = 0.92;
    context.fillRect(pane.left + 7, 7, width, 26);
    context.globalAlpha = 1;
    context.fillStyle = theme.ink;
    context.fillText(text, pane.left + 15, 20);
  }

  paintFrames(part, top, bottom) {
    const { context, theme, camera } = this;
    for (const frame of part.frames) {
      if (frame.y > bottom || frame.y + frame.height < top) continue;
      context.fillStyle = theme.accent;
      context.globalAlpha = 0.05;
      context.fillRect(frame.x, frame.y, frame.width, frame.height);
      context.globalAlpha = 0.55;
      context.strokeStyle = theme.soft;
      context.lineWidth = 1 / Math.max(camera.scale, 0.4);
      context.strokeRect(frame.x, frame.y, frame.width, frame.height);
      context.globalAlpha = 1;
    }
  }

  // Above the edges, which would run through the letters.
  paintTitles(part, top, bottom) {
    const { context, theme, camera } = this;
    if (camera.scale < TEXT_SCALE) return;
    context.textBaseline = "middle";
    for (const frame of part.frames) {
      if (frame.y > bottom || frame.y + NODE.title < top) continue;
      const text = this.shorten(`▾ ${titleOf(this.data, frame.block)}`, frame.width - 12, "600 12px");
      context.font = "600 12px system-ui, sans-serif";
      context.fillStyle = theme.paper;
      context.fillRect(frame.x + 3, frame.y + 3, context.measureText(text).width + 6, 16);
      context.fillStyle = theme.soft;
      context.fillText(text, frame.x + 6, frame.y + NODE.title / 2 - 1);
    }
  }

  paintEdges(part, top, bottom) {
    const { context, theme, camera } = this;
    if (camera.scale < 0.03) return;
    const paths = [new Path2D(), new Path2D(), new Path2D()];
    for (const edge of part.edges) {
      const from = part.byNode.get(edge.from);
      const to = part.byNode.get(edge.to);
      if (to.y < top || from.y > bottom + NODE.height) continue;
      const onPath = this.showsPath && from.onPath && to.onPath && edge.side === this.data.models.length - 1;
      const near = this.selected && (isIn(this.selected, from) || isIn(this.selected, to));
      traceEdge(onPath ? paths[1] : near ? paths[2] : paths[0], edge, from, to, camera.scale < 0.2);
    }
    const wide = 1 / Math.max(camera.scale, 0.35);
    const strokes = [[theme.soft, 1.1, 0.6], [theme.bad, 4, 1], [theme.accent, 2.4, 1]];
    strokes.forEach(([colour, width, alpha], at) => {
      context.strokeStyle = colour;
      context.globalAlpha = alpha;
      context.lineWidth = width * wide;
      context.stroke(paths[at]);
    });
    context.globalAlpha = 1;
  }

  paintBox(box) {
    const { context, theme, camera } = this;
    const { x, y, width } = box;
    const { height } = NODE;
    const isEnd = !box.node.block && this.scene.rows[box.node.start].kind;
    if (camera.scale < 0.12) {
      context.fillStyle = box.rgb ? box.fill : theme.line;
      context.fillRect(x, y, width, height);
      if (this.isMarked(box)) this.outline(box);
      return;
    }
    if (box.node.block) {
      context.fillStyle = theme.card;
      context.strokeStyle = theme.soft;
      context.lineWidth = 1;
      for (const shift of [6, 3]) {
        context.fillRect(x + shift, y + shift, width, height);
        context.strokeRect(x + shift, y + shift, width, height);
      }
    }
    context.beginPath();
    context.roundRect(x, y, width, height, isEnd ? height / 2 : 6);
    context.fillStyle = theme.card;
    context.fill();
    context.fillStyle = box.fill;
    context.fill();
    if (box.hatched) this.hatch(box);
    context.strokeStyle = theme.soft;
    context.lineWidth = 1;
    context.stroke();
    if (this.isMarked(box)) this.outline(box);
    if (camera.scale >= TEXT_SCALE) this.write(box);
  }

  isMarked(box) {
    return (
      (this.selected && isIn(this.selected, box)) ||
      (this.found.size && holdsAny(this.found, box.node)) ||
      (this.showsPath && box.onPath) ||
      this.hover === box
    );
  }

  outline(box) {
    const { context, theme, camera } = this;
    const isChosen = this.selected && isIn(this.selected, box);
    context.strokeStyle = isChosen ? theme.ink : this.showsPath && box.onPath ? theme.bad : theme.accent;
    context.lineWidth = (isChosen ? 4 : 3) / Math.max(camera.scale, 0.4);
    context.strokeRect(box.x - 3, box.y - 3, box.width + 6, NODE.height + 6);
  }

  hatch(box) {
    const { context } = this;
    context.save();
    context.clip();
    context.beginPath();
    for (let at = -NODE.height; at < box.width; at += 9) {
      context.moveTo(box.x + at, box.y + NODE.height);
      context.lineTo(box.x + at + NODE.height, box.y);
    }
    context.strokeStyle = box.rgb && isDark(box.rgb) ? "#ffffff59" : "#00000038";
    context.lineWidth = 1.2;
    context.stroke();
    context.restore();
    context.beginPath();
    context.roundRect(box.x, box.y, box.width, NODE.height, 6);
  }

  write(box) {
    const { context, theme } = this;
    const [first, second] = this.words(box);
    const badge = this.badge(box);
    const room = box.width - 20 - (badge ? 18 : 0);
    context.fillStyle = this.ink(box);
    context.textBaseline = "middle";
    context.font = "600 12.5px system-ui, sans-serif";
    context.fillText(this.shorten(first, room, "600 12.5px"), box.x + 10, box.y + (second ? 15 : 23));
    if (second) {
      context.font = "12px system-ui, sans-serif";
      context.fillText(this.shorten(second, box.width - 20, "12px"), box.x + 10, box.y + 32);
    }
    if (!badge) return;
    context.fillStyle = theme.card;
    context.beginPath();
    context.arc(box.x + box.width - 14, box.y + 14, 8.5, 0, 7);
    context.fill();
    context.fillStyle = theme.ink;
    context.font = "700 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(badge, box.x + box.width - 14, box.y + 14.5);
    context.textAlign = "start";
  }

  ink(box) {
    return box.rgb ? (isDark(box.rgb) ? "#ffffff" : "#000000") : this.theme.ink;
  }

  words(box) {
    const { node, side } = box;
    if (node.block) {
      const count = countOps(this.scene, node, side);
      const told = count > 1 ? this.data.say("ops", this.data.format("total", count)) : "";
      return [`▸ ${titleOf(this.data, node.block)}`, [box.words, told].filter(Boolean).join(" · ")];
    }
    const row = this.scene.rows[node.start];
    const index = row[side ? "b" : "a"];
    if (row.kind) {
      const tensor = this.data.end(side, this.graph, row.kind, index);
      return [this.data.words[row.kind === 1 ? "input" : "output"], tensor.type];
    }
    const op = this.data.op(side, index);
    return [`${op.index} ${op.kind}`, box.words || op.outputs[0]?.type || ""];
  }

  badge(box) {
    if (box.node.block || this.data.models.length < 2) return "";
    return BADGES[this.scene.rows[box.node.start].change] ?? "";
  }

  // The start of a text that fits; measured once.
  shorten(text, room, font) {
    const key = `${font}|${Math.round(room)}|${text}`;
    const known = this.labels.get(key);
    if (known !== undefined) return known;
    const { context } = this;
    context.font = `${font} system-ui, sans-serif`;
    let shown = text;
    while (shown.length > 2 && context.measureText(shown).width > room)
      shown = `${shown.slice(0, Math.min(shown.length - 2, Math.ceil(shown.length * 0.94) - 1))}…`;
    if (this.labels.size > 20000) this.labels.clear();
    this.labels.set(key, shown);
    return shown;
  }

  // The small map: the whole drawing once as a picture, and where the camera is.

  drawMap() {
    if (!this.drawing || !this.width) return;
    const ratio = this.ratio ?? 1;
    const place = this.map.getBoundingClientRect();
    const [width, height] = [place.width || 96, place.height || 150];
    this.map.width = width * ratio;
    this.map.height = height * ratio;
    const picture = document.createElement("canvas");
    picture.width = this.map.width;
    picture.height = this.map.height;
    const context = picture.getContext("2d");
    context.scale(ratio, ratio);
    const spans = this.shown.map((side) => this.drawing.sides[side]);
    const left = Math.min(...spans.map((part) => part.left));
    const right = Math.max(...spans.map((part) => part.right), left + 1);
    const pane = width / this.shown.length;
    const across = (pane - 6) / (right - left);
    const down = (height - 6) / Math.max(this.drawing.height, 1);
    this.mapping = { left, across, down, pane, width, height };
    this.shown.forEach((side, at) => {
      for (const box of this.drawing.sides[side].boxes) {
        context.fillStyle = box.rgb ? box.fill : this.theme.soft;
        const x = at * pane + 3 + (box.x - left) * across;
        context.fillRect(x, 3 + box.y * down, Math.max(box.width * across, 1), Math.max(NODE.height * down, 0.8));
      }
    });
    this.picture = picture;
  }

  paintMapFrame() {
    if (!this.picture) return;
    const context = this.map.getContext("2d");
    const { left, across, down, pane, height } = this.mapping;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.map.width, this.map.height);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const half = { x: this.width / this.shown.length / 2 / this.camera.scale, y: this.height / 2 / this.camera.scale };
    const y = 3 + (this.camera.y - half.y) * down;
    const tall = Math.max(2 * half.y * down, 3);
    context.strokeStyle = this.theme.bad;
    context.lineWidth = 2;
    this.shown.forEach((_, at) => {
      const x = at * pane + 3 + (this.camera.x - half.x - left) * across;
      const from = Math.max(x, at * pane + 1);
      const to = Math.min(x + 2 * half.x * across, (at + 1) * pane - 1);
      context.strokeRect(from, Math.max(y, 1), Math.max(to - from, 2), Math.min(tall, height - 2));
    });
  }

  moveByMap(event) {
    const place = this.map.getBoundingClientRect();
    const { down } = this.mapping;
    this.camera.y = (event.clientY - place.top - 3) / down;
    this.draw();
  }

  // What a reader does.

  at(x, y) {
    const side = this.shown.find((one) => x < this.pane(one).left + this.pane(one).width) ?? this.shown[0];
    const wx = (x - this.pane(side).middle) / this.camera.scale + this.camera.x;
    const wy = (y - this.height / 2) / this.camera.scale + this.camera.y;
    const part = this.drawing.sides[side];
    const isOver = (box) => wx >= box.x && wx <= box.x + box.width;
    const box = visibleBoxes(part.boxes, wy - NODE.height, wy).find(isOver) ?? null;
    const inTitle = (frame) => wx >= frame.x && wx <= frame.x + frame.width && wy >= frame.y && wy <= frame.y + NODE.title;
    const frame = box ? null : ([...part.frames].reverse().find(inTitle) ?? null);
    return { box, frame };
  }

  listen() {
    const { canvas } = this;
    const pointers = new Map();
    let moved = 0;
    const local = (event) => {
      const place = canvas.getBoundingClientRect();
      return [event.clientX - place.left, event.clientY - place.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, local(event));
      moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = local(event);
      const before = pointers.get(event.pointerId);
      if (!before) {
        const { box, frame } = this.at(...now);
        canvas.style.cursor = box || frame ? "pointer" : "grab";
        if (box !== this.hover) {
          this.hover = box;
          this.draw();
        }
        return;
      }
      const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      if (others.length) {
        const away = (p, q) => Math.hypot(p[0] - q[0], p[1] - q[1]) || 1;
        this.zoom(away(now, others[0]) / away(before, others[0]), (now[0] + others[0][0]) / 2, (now[1] + others[0][1]) / 2);
        moved += 10;
      } else {
        moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
        if (moved > 4) this.pan(now[0] - before[0], now[1] - before[1]);
      }
      pointers.set(event.pointerId, now);
    });
    const end = (event) => {
      if (pointers.delete(event.pointerId) && moved <= 4 && event.type === "pointerup") this.click(...local(event));
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("dblclick", (event) => this.enter(this.at(...local(event)).box));
    canvas.addEventListener(
      "wheel",
      (event) => {
        const [x, y] = local(event);
        const before = this.camera.y;
        if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY / 300), x, y);
        else this.pan(-event.deltaX, -event.deltaY);
        const isAtEnd = !event.ctrlKey && !event.metaKey && !event.deltaX && this.camera.y === before;
        if (!isAtEnd) event.preventDefault(); // at an end of the graph the page scrolls on
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => this.press(event));
    const drag = (event) => {
      if (event.buttons || event.type === "pointerdown") this.moveByMap(event);
    };
    this.map.addEventListener("pointerdown", drag);
    this.map.addEventListener("pointermove", drag);
  }

  click(x, y) {
    const { box, frame } = this.at(x, y);
    if (frame) this.toggle(frame.block, false);
    else if (box && box.node.block) {
      this.select(box);
      this.toggle(box.node.block, true);
    } else this.select(box);
  }

  // Into a block, or into the graph that an op runs.
  enter(box) {
    if (!box) return;
    if (box.node.block) return void this.toggle(box.node.block);
    const row = this.scene.rows[box.node.start];
    const op = row.kind ? null : this.data.op(box.side, row[box.side ? "b" : "a"]);
    if (op && op.calls.length) this.showGraph(op.calls[0]);
  }

  press(event) {
    const step = event.shiftKey ? 240 : 60;
    const keys = {
      ArrowUp: () => this.pan(0, step),
      ArrowDown: () => this.pan(0, -step),
      ArrowLeft: () => this.pan(step, 0),
      ArrowRight: () => this.pan(-step, 0),
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      0: () => this.fit(),
      n: () => this.step(1),
      p: () => this.step(-1),
      Enter: () => this.selected && this.enter(this.boxOf(this.selected.start, this.selected.side)),
      f: () => this.foldAround(),
      e: () => this.foldAll(true),
      c: () => this.foldAll(false),
      Home: () => this.fit(),
      End: () => this.pan(0, -this.drawing.height * this.camera.scale),
      Escape: () => this.select(null),
      "/": () => this.events.search(),
    };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  // The next node in the order in which ops run.
  step(by) {
    const { nodes } = this.drawing;
    const isShown = (node) => this.shown.some((side) => node.on[side]);
    const now = this.selected ? nodes.findIndex((node) => node.start === this.selected.start) : by > 0 ? -1 : nodes.length;
    for (let at = now + by; at >= 0 && at < nodes.length; at += by) {
      if (!isShown(nodes[at])) continue;
      const wish = this.selected ? this.selected.side : this.shown[0];
      const box = this.boxOf(nodes[at].start, this.shown.includes(wish) ? wish : null) ?? this.boxOf(nodes[at].start);
      this.select(box);
      return void this.moveTo(box);
    }
  }

  // Closes the smallest open block around what is selected.
  foldAround() {
    if (!this.selected) return;
    let found = null;
    eachBlock(this.scene.blocks, (block) => {
      const holds = block.start <= this.selected.start && this.selected.end <= block.end;
      if (holds && this.open[this.graph].has(block.id)) found = block;
    });
    if (!found) return;
    this.toggle(found, false);
    this.select(this.boxOf(found.start));
  }
}

// Boxes whose top lies between two heights; they are sorted by it.
function visibleBoxes(boxes, top, bottom) {
  let [low, high] = [0, boxes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (boxes[middle].y < top) low = middle + 1;
    else high = middle;
  }
  const found = [];
  while (low < boxes.length && boxes[low].y <= bottom) found.push(boxes[low++]);
  return found;
}

function traceEdge(path, edge, from, to, straight) {
  const [x1, y1] = [from.x + from.width / 2, from.y + NODE.height];
  const [x2, y2] = [to.x + to.width / 2, to.y];
  path.moveTo(x1, y1);
  if (edge.lane !== undefined) {
    path.bezierCurveTo(x1, y1 + 40, edge.lane, y1, edge.lane, y1 + 60);
    path.lineTo(edge.lane, y2 - 60);
    path.bezierCurveTo(edge.lane, y2, x2, y2 - 40, x2, y2);
    return;
  }
  let [x, y] = [x1, y1];
  for (const [bx, by] of [...edge.points, [x2, y2]]) {
    if (straight) path.lineTo(bx, by);
    else path.bezierCurveTo(x, (y + by) / 2, bx, (y + by) / 2, bx, by);
    [x, y] = [bx, by];
  }
}

const isIn = (selected, box) => box.node.start < selected.end && selected.start < box.node.end;

function holdsAny(rows, node) {
  for (let place = node.start; place < node.end; place++) if (rows.has(place)) return true;
  return false;
}

function countOps(graph, node, side) {
  let count = 0;
  for (let place = node.start; place < node.end; place++) {
    const row = graph.rows[place];
    if (!row.kind && row[side ? "b" : "a"] !== null) count += 1;
  }
  return count;
}

function eachBlock(blocks, act) {
  for (const block of blocks) {
    act(block);
    eachBlock(block.inside, act);
  }
}

// Blocks are opened from the largest on, as long as no more than about eighty nodes are there.
function startOpen(graph) {
  const open = new Set();
  let count = listNodes(graph, open).nodes.length;
  const waiting = [...graph.blocks];
  while (waiting.length) {
    waiting.sort((x, y) => y.end - y.start - (x.end - x.start));
    const block = waiting.shift();
    const more = partsOf(block) - 1;
    if (count + more > 80) continue;
    open.add(block.id);
    count += more;
    waiting.push(...block.inside);
  }
  return open;
}

const partsOf = (block) =>
  block.end - block.start - block.inside.reduce((total, one) => total + one.end - one.start - 1, 0);

function titleOf(data, block) {
  const short = block.title.split(".").at(-1) || block.title;
  return block.of > 1 ? `${short}  ${data.say("repeat", block.number, block.of)}` : short;
}
