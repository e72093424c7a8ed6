// A window of the graph of TBs: a column a kernel, a dot a TB, lines through group nodes.

const NEED_NAMES = ["none of the kernel before", "some of it", "all of it", "no kernel before in its stream"];
const NEED_COLOURS = ["#FFFFFF", "#56B4E9", "#D55E00", "#BBBBBB"];
const KIND_STYLES = [ // RAW, WAR, WAW
  { name: "RAW (reads what it wrote)", colour: "#0072B2", dash: [] },
  { name: "WAR (overwrites what it read)", colour: "#D55E00", dash: [6, 3] },
  { name: "WAW (overwrites what it wrote)", colour: "#882255", dash: [2, 3] },
];
const GRAPH_PITCH = 13; // most pixels from TB to TB
const DOT_PITCH = 3; // fewest; beyond that, TBs share a mark
const LINES_EACH = [[2e4, 1], [2e5, 3], [Infinity, 6]]; // lines, and to how many pixels their ends are rounded
const HUB_GAP = 4; // pixels between two group nodes, where there is room

/** Return the place in KIND_STYLES of an edge of these kinds: the one that renaming would not remove goes first. */
function kindOf(kinds) {
  return kinds & 1 ? 0 : kinds & 2 ? 1 : 2;
}

/** Kernels `first` to `first + count - 1` of a graph. */
class GraphWindow {
  constructor(graph, run, first, count) {
    Object.assign(this, { graph, run, first, count });
    this.begin = graph.offsets[first];
    this.end = graph.offsets[first + count];
    this.hubs = this.makeHubs();
    this.needs = Array.from({ length: count }, (_, i) => this.needsOf(first + i));
  }

  /**
   * Return what all consumers of a hub wait for: `producers` (numbered through the job) of one kind.
   *
   * Producers before the window do not count, so that nodes which differ in them alone share a hub.
   */
  makeHubs() {
    const { graph, first, count } = this;
    const known = new Map();
    const made = [];
    for (let n = 0; n < graph.nodes; n += 1) {
      const column = graph.kernel[n] - first;
      if (column < 0 || column >= count) continue;
      const sets = KIND_STYLES.map(() => []);
      for (let i = graph.producer_ptr[n]; i < graph.producer_ptr[n + 1]; i += 1) {
        const number = graph.producers[i];
        if (number >= this.begin && number < this.end) sets[kindOf(graph.kinds[i])].push(number);
      }
      const consumers = graph.consumers.subarray(graph.consumer_ptr[n], graph.consumer_ptr[n + 1]);
      sets.forEach((producers, kind) => {
        if (!producers.length) return;
        const key = `${column} ${kind} ${producers.length} ${hashOf(producers)}`;
        const alike = known.get(key) ?? [];
        let hub = alike.find((each) => each.producers.every((number, i) => number === producers[i]));
        if (!hub) {
          hub = { column, kind, producers, consumers: [] };
          made.push(hub);
          known.set(key, [...alike, hub]);
        }
        for (const tb of consumers) hub.consumers.push(tb);
      });
    }
    return made;
  }

  /** Return the kernel before a kernel in its stream, or -1. */
  before(kernel) {
    const { stream } = this.run.kernels;
    for (let k = kernel - 1; k >= 0; k -= 1) if (stream[k] === stream[kernel]) return k;
    return -1;
  }

  /** Return the need of each TB of a kernel of the kernel before: places in NEED_NAMES. */
  needsOf(kernel) {
    const { graph } = this;
    const tbs = graph.offsets[kernel + 1] - graph.offsets[kernel];
    const made = new Uint8Array(tbs);
    const before = this.before(kernel);
    if (before < 0) return made.fill(3);
    const [low, high] = [graph.offsets[before], graph.offsets[before + 1]];
    const counts = new Map();
    const { ptr, items } = graph.waiting;
    for (let tb = 0; tb < tbs; tb += 1) {
      const number = graph.offsets[kernel] + tb;
      let [sum, most] = [0, 0];
      for (let i = ptr[number]; i < ptr[number + 1]; i += 1) {
        const n = items[i];
        if (!counts.has(n)) counts.set(n, this.producersIn(n, low, high));
        sum += counts.get(n);
        most = Math.max(most, counts.get(n));
      }
      const all = most === high - low || (sum >= high - low && this.union(kernel, tb, low, high) === high - low);
      made[tb] = all && high > low ? 2 : sum ? 1 : 0;
    }
    return made;
  }

  producersIn(n, low, high) {
    const { producers, producer_ptr: ptr } = this.graph;
    let count = 0;
    for (let i = ptr[n]; i < ptr[n + 1]; i += 1) count += producers[i] >= low && producers[i] < high ? 1 : 0;
    return count;
  }

  union(kernel, tb, low, high) {
    let count = 0;
    for (const number of this.graph.producersOf(kernel, tb).keys()) count += number >= low && number < high ? 1 : 0;
    return count;
  }

  /** Return how many TBs of the window have each need. */
  counts() {
    const made = [0, 0, 0, 0];
    for (const needs of this.needs) for (const need of needs) made[need] += 1;
    return made;
  }

  /** Return the column of a TB that is numbered through the job, or -1. */
  columnOf(number) {
    if (number < this.begin || number >= this.end) return -1;
    let column = 0;
    while (number >= this.graph.offsets[this.first + column + 1]) column += 1;
    return column;
  }

  /** Place all on a picture: `width` x `height` pixels between `top` and the bottom. */
  place(width, top, height) {
    Object.assign(this, { width, top, height: height - top - 6 });
    const each = width / this.count;
    this.columns = Array.from({ length: this.count }, (_, i) => {
      const kernel = this.first + i;
      const tbs = this.graph.offsets[kernel + 1] - this.graph.offsets[kernel];
      const pitch = Math.min(GRAPH_PITCH, this.height / Math.max(1, tbs));
      return { kernel, tbs, pitch, x: (i + 0.5) * each, top: top + (this.height - pitch * tbs) / 2 };
    });
    this.placeHubs();
    this.lines = this.makeLines();
  }

  yOf(column, tb) {
    const { top, pitch } = this.columns[column];
    return top + (tb + 0.5) * pitch;
  }

  /** Return the point of a TB that is numbered through the job. */
  pointOf(number) {
    const column = this.columnOf(number);
    return [this.columns[column].x, this.yOf(column, number - this.graph.offsets[this.first + column])];
  }

  /** Place hubs before the column of their consumers, or after it for edges inside a kernel. */
  placeHubs() {
    const groups = new Map();
    for (const hub of this.hubs) {
      const { column, producers, consumers } = hub;
      const tails = producers.reduce((sum, number) => sum + this.pointOf(number)[1], 0) / producers.length;
      const heads = consumers.reduce((sum, tb) => sum + this.yOf(column, tb), 0) / consumers.length;
      const own = producers.some((number) => this.columnOf(number) === column);
      hub.slot = own ? 2 * column + 1 : 2 * column - 1;
      hub.y = (tails + heads) / 2;
      hub.direct = producers.length === 1 || consumers.length === 1;
      if (hub.direct) continue;
      if (!groups.has(hub.slot)) groups.set(hub.slot, []);
      groups.get(hub.slot).push(hub);
    }
    for (const hubs of groups.values()) this.spread(hubs);
  }

  /** Move hubs apart that would lie on each other. */
  spread(hubs) {
    hubs.sort((a, b) => a.y - b.y);
    const gap = Math.min(HUB_GAP, this.height / hubs.length);
    for (let i = 1; i < hubs.length; i += 1) hubs[i].y = Math.max(hubs[i].y, hubs[i - 1].y + gap);
    const over = hubs[hubs.length - 1].y - (this.top + this.height);
    if (over > 0) {
      for (let i = hubs.length - 1, limit = this.top + this.height; i >= 0; i -= 1, limit -= gap) hubs[i].y = Math.min(hubs[i].y, limit);
    }
  }

  /** Return the x of a slot: 2 i is column i, odd ones are between columns. */
  slotX(slot) {
    return ((slot / 2 + 0.5) * this.width) / this.count;
  }

  /** Return lines [x0, y0, x1, y1, ...] for each kind, equal ones once. */
  makeLines() {
    const many = this.hubs.reduce((sum, { direct, producers: p, consumers: c }) => sum + (direct ? p.length * c.length : p.length + c.length), 0);
    const [, grain] = LINES_EACH.find(([most]) => many <= most);
    return KIND_STYLES.map((_, kind) => {
      const made = new LineSet(this, grain);
      for (const { kind: own, column, producers, consumers, slot, y, direct } of this.hubs) {
        if (own !== kind) continue;
        for (const number of producers) {
          const [from, at] = [2 * this.columnOf(number), this.pointOf(number)[1]];
          if (direct) for (const tb of consumers) made.add(from, at, 2 * column, this.yOf(column, tb));
          else made.add(from, at, slot, y);
        }
        if (!direct) for (const tb of consumers) made.add(slot, y, 2 * column, this.yOf(column, tb));
      }
      return made.lines;
    });
  }

  /** Return [column, tb] of the TB at a point, or null. */
  at(x, y) {
    const column = Math.floor((x / this.width) * this.count);
    const found = this.columns[column];
    if (!found || Math.abs(x - found.x) > Math.max(8, Math.min(20, this.width / this.count / 4))) return null;
    const tb = Math.floor((y - found.top) / found.pitch);
    return tb >= 0 && tb < found.tbs ? [column, tb] : null;
  }
}

/** Return a number that is equal for equal lists of numbers. */
function hashOf(numbers) {
  let hash = 2166136261;
  for (const number of numbers) hash = Math.imul(hash ^ number, 16777619);
  return hash >>> 0;
}

/** Lines between slots, each once: their ends are rounded to `grain` pixels. */
class LineSet {
  constructor(window, grain) {
    Object.assign(this, { window, grain });
    this.known = new Set();
    this.lines = [];
  }

  add(slot0, y0, slot1, y1) {
    const [top, bottom] = [Math.round(y0 / this.grain) * this.grain, Math.round(y1 / this.grain) * this.grain];
    const key = ((slot0 + 1) * 4096 + top) * 262144 + (slot1 + 1) * 4096 + bottom;
    if (this.known.has(key)) return;
    this.known.add(key);
    this.lines.push(this.window.slotX(slot0), top, this.window.slotX(slot1), bottom);
  }
}
