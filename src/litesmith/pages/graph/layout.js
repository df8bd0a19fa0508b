// Where everything is drawn: rows become nodes, nodes get layers from top to bottom, and a place.
// Both models share the layers, so that an op and its counterpart stand at the same height.

const NODE = { width: 204, height: 46, gap: 26, between: 34, title: 24, pad: 12 };
const MOST_BENDS = 12; // an edge over more layers runs in a lane beside the graph
const SWEEPS = 8;

// What is shown of a graph: an op, or a closed block in place of its rows. Open blocks are frames.
function listNodes(graph, open) {
  const nodes = [];
  const frames = [];
  const walk = (start, end, blocks, depth) => {
    let place = start;
    for (const block of blocks) {
      while (place < block.start) nodes.push(rowNode(graph, place++, depth));
      if (open.has(block.id)) {
        const first = nodes.length;
        walk(block.start, block.end, block.inside, depth + 1);
        frames.push({ block, first, last: nodes.length, depth });
      } else nodes.push(blockNode(graph, block, depth));
      place = block.end;
    }
    while (place < end) nodes.push(rowNode(graph, place++, depth));
  };
  walk(0, graph.rows.length, graph.blocks, 0);
  nodes.forEach((node, index) => (node.index = index));
  return { nodes, frames };
}

function rowNode(graph, place, depth) {
  const row = graph.rows[place];
  return { block: null, start: place, end: place + 1, depth, on: [row.a !== null, row.b !== null] };
}

function blockNode(graph, block, depth) {
  const on = [false, false];
  for (let place = block.start; place < block.end; place++) {
    const row = graph.rows[place];
    if (row.a !== null) on[0] = true;
    if (row.b !== null) on[1] = true;
  }
  return { block, start: block.start, end: block.end, depth, on };
}

// The edges between nodes of one side, each once.
function listEdges(graph, nodes) {
  const at = new Int32Array(graph.rows.length);
  nodes.forEach((node, index) => at.fill(index, node.start, node.end));
  const seen = new Set();
  const edges = [];
  for (const [start, end, side] of graph.edges) {
    const [from, to] = [at[start], at[end]];
    const key = (from * nodes.length + to) * 2 + side;
    if (from === to || seen.has(key)) continue;
    seen.add(key);
    edges.push({ from, to, side });
  }
  return edges;
}

// Layers: below everything that is read. What reads nothing stands just above its first reader.
function rankNodes(nodes, edges) {
  const ranks = new Int32Array(nodes.length);
  const fed = new Uint8Array(nodes.length);
  const first = new Int32Array(nodes.length).fill(1 << 30);
  const sorted = [...edges].sort((x, y) => x.from - y.from || x.to - y.to);
  for (const { from, to } of sorted) {
    ranks[to] = Math.max(ranks[to], ranks[from] + 1);
    fed[to] = 1;
  }
  for (const { from, to } of edges) first[from] = Math.min(first[from], ranks[to]);
  nodes.forEach((_, index) => {
    if (!fed[index] && first[index] < 1 << 30) ranks[index] = Math.max(0, first[index] - 1);
  });
  return ranks;
}

// Positions nearest to the wished ones that keep their order and a distance: wishes that collide
// are averaged (pool adjacent violators).
function spreadOut(wishes, sizes) {
  const offsets = [0];
  for (let i = 1; i < sizes.length; i++)
    offsets.push(offsets[i - 1] + (sizes[i - 1] + sizes[i]) / 2 + NODE.gap);
  const pools = [];
  wishes.forEach((wish, i) => {
    let pool = { sum: wish - offsets[i], count: 1 };
    while (pools.length && pools.at(-1).sum / pools.at(-1).count > pool.sum / pool.count) {
      const last = pools.pop();
      pool = { sum: last.sum + pool.sum, count: last.count + pool.count };
    }
    pools.push(pool);
  });
  const places = [];
  for (const { sum, count } of pools)
    for (let n = 0; n < count; n++) places.push(sum / count + offsets[places.length]);
  return places;
}

const median = (values) => {
  const sorted = values.sort((x, y) => x - y);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

// One side: nodes and the bends of long edges in layers, ordered and placed.
function placeSide(nodes, edges, ranks, count, side) {
  const layers = Array.from({ length: count }, () => []);
  const points = [];
  const add = (rank, width, node) => {
    const point = { rank, width, node, x: 0, up: [], down: [] };
    points.push(point);
    layers[rank].push(point);
    return point;
  };
  const own = nodes.map((node, index) => (node.on[side] ? add(ranks[index], NODE.width, node) : null));
  const drawn = [];
  for (const edge of edges) {
    if (edge.side !== side) continue;
    const span = ranks[edge.to] - ranks[edge.from];
    if (span > MOST_BENDS) {
      drawn.push({ ...edge, bends: null });
      continue;
    }
    const bends = [];
    let before = own[edge.from];
    for (let step = 1; step < span; step++) {
      const bend = add(ranks[edge.from] + step, 8, null);
      before.down.push(bend);
      bend.up.push(before);
      bends.push(bend);
      before = bend;
    }
    before.down.push(own[edge.to]);
    own[edge.to].up.push(before);
    drawn.push({ ...edge, bends });
  }
  orderLayers(layers);
  for (let sweep = 0; sweep < SWEEPS; sweep++) placeLayers(layers, sweep % 2 === 1);
  return { points: own, drawn };
}

function orderLayers(layers) {
  const number = (layer) => layer.forEach((point, at) => (point.at = at));
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const upward = sweep % 2 === 1;
    for (const layer of upward ? [...layers].reverse() : layers) {
      if (layer.length < 2) continue;
      for (const point of layer) {
        const near = upward ? point.down : point.up;
        point.wish = near.length ? median(near.map((other) => other.at)) : point.at;
      }
      layer.sort((x, y) => x.wish - y.wish || x.at - y.at);
      number(layer);
    }
  }
}

function placeLayers(layers, upward) {
  for (const layer of upward ? [...layers].reverse() : layers) {
    if (!layer.length) continue;
    const wishes = layer.map((point) => {
      const near = upward ? point.down : point.up;
      return near.length ? median(near.map((other) => other.x)) : point.x;
    });
    const places = spreadOut(wishes, layer.map((point) => point.width));
    layer.forEach((point, at) => (point.x = places[at]));
  }
}

// Lanes for edges that are too long for bends, left of the graph; those of one node share a lane.
function giveLanes(drawn, left) {
  const ends = [];
  const taken = new Map();
  for (const edge of drawn) {
    if (edge.bends) continue;
    let lane = taken.get(edge.from);
    if (lane === undefined) {
      lane = ends.findIndex((end) => end < edge.from);
      if (lane < 0) lane = ends.length;
      taken.set(edge.from, lane);
    }
    ends[lane] = Math.max(ends[lane] ?? 0, edge.to);
    edge.lane = left - NODE.gap - 10 * (lane % 12);
  }
}

// The whole drawing of a graph with some blocks open.
function layOut(graph, open, sides) {
  const { nodes, frames } = listNodes(graph, open);
  const edges = listEdges(graph, nodes);
  const ranks = rankNodes(nodes, edges);
  const count = nodes.length ? Math.max(...ranks) + 1 : 0;
  const tops = layerTops(nodes, frames, ranks, count);
  const drawing = { nodes, frames, ranks, sides: [], height: tops.end };
  for (let side = 0; side < sides; side++) {
    const { points, drawn } = placeSide(nodes, edges, ranks, count, side);
    const xs = points.filter(Boolean).map((point) => point.x);
    const middle = xs.length ? (Math.min(...xs) + Math.max(...xs)) / 2 : 0;
    const boxes = [];
    points.forEach((point, index) => {
      if (!point) return;
      const x = point.x - middle - NODE.width / 2;
      boxes.push({ node: nodes[index], side, x, y: tops.at[ranks[index]], width: NODE.width });
    });
    boxes.sort((p, q) => p.y - q.y || p.x - q.x);
    const byNode = new Map(boxes.map((box) => [box.node.index, box]));
    for (const edge of drawn)
      if (edge.bends)
        edge.points = edge.bends.map((bend) => [bend.x - middle, tops.at[bend.rank] + NODE.height / 2]);
    const left = boxes.length ? Math.min(...boxes.map((box) => box.x)) : 0;
    giveLanes(drawn, left);
    const right = boxes.length ? Math.max(...boxes.map((box) => box.x + box.width)) : 0;
    drawing.sides.push({ boxes, byNode, edges: drawn, frames: placeFrames(frames, byNode), left, right });
  }
  return drawing;
}

// The top of each layer, with room for the titles of the frames that begin there.
function layerTops(nodes, frames, ranks, count) {
  const titles = new Int32Array(count);
  const tails = new Int32Array(count + 1);
  for (const frame of frames) {
    let [top, bottom] = [count, 0];
    for (let n = frame.first; n < frame.last; n++) {
      top = Math.min(top, ranks[n]);
      bottom = Math.max(bottom, ranks[n]);
    }
    frame.top = top;
    frame.bottom = bottom;
    titles[top] += 1;
    tails[bottom + 1] += 1;
  }
  const at = new Float64Array(count);
  let y = 0;
  for (let rank = 0; rank < count; rank++) {
    y += titles[rank] * NODE.title + (tails[rank] * NODE.pad) / 2;
    at[rank] = y;
    y += NODE.height + NODE.between;
  }
  return { at, end: y };
}

function placeFrames(frames, byNode) {
  const placed = [];
  const inner = new Map();
  for (const frame of frames) {
    const boxes = [];
    for (let n = frame.first; n < frame.last; n++) if (byNode.has(n)) boxes.push(byNode.get(n));
    if (!boxes.length) continue;
    const nested = frames.filter((other) => other !== frame && other.first >= frame.first && other.last <= frame.last && inner.has(other));
    const level = 1 + Math.max(0, ...nested.map((other) => inner.get(other)));
    inner.set(frame, level);
    const pad = NODE.pad * level * 0.7;
    const x = Math.min(...boxes.map((box) => box.x)) - pad;
    const y = Math.min(...boxes.map((box) => box.y)) - NODE.title * level + 4;
    const right = Math.max(...boxes.map((box) => box.x + box.width)) + pad;
    const bottom = Math.max(...boxes.map((box) => box.y)) + NODE.height + pad;
    placed.push({ block: frame.block, x, y, width: right - x, height: bottom - y, depth: frame.depth });
  }
  return placed.sort((p, q) => p.depth - q.depth);
}
