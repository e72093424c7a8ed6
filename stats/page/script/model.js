// What the page knows of runs and of the graph of TBs.

const NONE = 0xffffffff;

/** A run: kernels, TBs by row (an SM's slot) and time, all as columns. Times are in ns. */
class Run {
  constructor(about, number) {
    this.about = about;
    this.number = number;
    this.scheme = about.row.scheme;
    this.label = about.label;
    this.tick = about.tick_ns ?? 1;
    this.end = about.end_ns ?? about.row.time_us * 1e3;
    this.slots = about.slots;
    this.sms = about.sms;
    this.kernels = null;
    this.tbs = null;
  }

  /** Read the columns; done once. */
  load() {
    this.loading ??= this.read();
    return this.loading;
  }

  async read() {
    const [kernels, tbs] = await Promise.all([
      readBlob(`kernels${this.number}`),
      readBlob(`tbs${this.number}`),
    ]);
    this.kernels = kernels ?? { kernel: new Uint32Array(0), name: new Uint32Array(0), tbs: new Uint32Array(0) };
    this.kernels.count = this.kernels.kernel.length;
    this.tbs = tbs;
    this.count = tbs ? tbs.start.length : 0;
    this.offsets = new Uint32Array(this.kernels.count + 1); // number of each kernel's TB 0 through the run
    for (let k = 0; k < this.kernels.count; k += 1) this.offsets[k + 1] = this.offsets[k] + this.kernels.tbs[k];
    return this;
  }

  /** Return the name of a kernel. */
  nameOf(kernel) {
    return this.about.names[this.kernels.name[kernel]] ?? `kernel ${kernel}`;
  }

  /** Return the colour of a kernel's name. */
  colourOf(kernel) {
    return nameColour(this.nameOf(kernel));
  }

  /** Return the row (SM and slot) of a TB by its place in the columns. */
  rowOf(index) {
    let [low, high] = [0, this.tbs.first.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.tbs.first[middle] <= index) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Return the place of the TB that a row holds at a time of ns, or -1; `slack`: how far beside it counts. */
  at(row, ns, slack = 0) {
    const { first, start, length } = this.tbs;
    const time = ns / this.tick;
    let [low, high] = [first[row], first[row + 1]];
    const [begin, end] = [low, high];
    while (low < high) { // the first TB that ends after this time
      const middle = (low + high) >> 1;
      if (start[middle] + length[middle] <= time) low = middle + 1;
      else high = middle;
    }
    if (low < end && start[low] <= time) return low;
    const near = slack / this.tick;
    const after = low < end ? start[low] - time : Infinity;
    const before = low > begin ? time - start[low - 1] - length[low - 1] : Infinity;
    if (Math.min(after, before) > near) return -1;
    return after < before ? low : low - 1;
  }

  /** Return the place of a TB in the columns, or -1 where the timeline leaves it out. */
  find(kernel, tb) {
    if (!this.places) {
      this.places = new Int32Array(this.offsets[this.kernels.count]).fill(-1);
      for (let i = 0; i < this.count; i += 1) this.places[this.offsets[this.tbs.kernel[i]] + this.tbs.tb[i]] = i;
    }
    if (kernel >= this.kernels.count || tb >= this.kernels.tbs[kernel]) return -1;
    return this.places[this.offsets[kernel] + tb];
  }

  /** Return times (ns) and waits (ns) of a TB by its place. */
  facts(index) {
    const { tbs, tick } = this;
    const dispatch = tbs.start[index] * tick;
    const slot = tbs.slot_wait[index] * tick;
    const ready = dispatch - slot;
    const dependence = tbs.dependence_wait[index] * tick;
    const lag = tbs.lag[index] * tick;
    const row = this.rowOf(index);
    return {
      kernel: tbs.kernel[index],
      tb: tbs.tb[index],
      sm: this.sms[Math.floor(row / this.slots)],
      slot: row % this.slots,
      ready,
      dispatch,
      start: dispatch + lag,
      end: dispatch + tbs.length[index] * tick,
      waits: { launch: ready - dependence, dependence, slot, dispatch: lag },
      last: tbs.last_kernel[index] === NONE ? null : [tbs.last_kernel[index], tbs.last_tb[index]],
    };
  }

  /** Return the graph of the run's job, or null; `graphNote` says why. */
  async graph() {
    return this.about.graph ? graphOf(this.about.file) : null;
  }

  get graphNote() {
    const note = PAGE.files[this.about.file].graph_note;
    return note ?? (this.about.graph ? "" : "this scheme launches other kernels than the job");
  }
}

/** The graph of TBs of a job, as group nodes: each consumer of a node waits for all of its producers. */
class Graph {
  constructor(columns) {
    Object.assign(this, columns);
    this.nodes = this.kernel.length;
    const count = this.offsets[this.offsets.length - 1];
    const consumers = new Uint32Array(this.consumers.length); // numbered through the job
    for (let n = 0; n < this.nodes; n += 1) {
      for (let i = this.consumer_ptr[n]; i < this.consumer_ptr[n + 1]; i += 1) {
        consumers[i] = this.offsets[this.kernel[n]] + this.consumers[i];
      }
    }
    this.allConsumers = consumers;
    this.waiting = inverted(this.consumer_ptr, consumers, count); // nodes that a TB waits for
    this.signalled = inverted(this.producer_ptr, this.producers, count); // nodes that wait for a TB
  }

  /** Return [kernel, tb] of a TB that is numbered through the job. */
  place(number) {
    let [low, high] = [0, this.offsets.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.offsets[middle] <= number) low = middle;
      else high = middle;
    }
    return [low, number - this.offsets[low]];
  }

  /** Return the producers of a TB: Map from number through the job to kinds (1 RAW, 2 WAR, 4 WAW). */
  producersOf(kernel, tb) {
    const made = new Map();
    const { ptr, items } = this.waiting;
    const number = this.offsets[kernel] + tb;
    for (let i = ptr[number]; i < ptr[number + 1]; i += 1) {
      for (let p = this.producer_ptr[items[i]]; p < this.producer_ptr[items[i] + 1]; p += 1) {
        made.set(this.producers[p], (made.get(this.producers[p]) ?? 0) | this.kinds[p]);
      }
    }
    return made;
  }

  /** Return the consumers of a TB as a Set of numbers through the job. */
  consumersOf(kernel, tb) {
    const made = new Set();
    const { ptr, items } = this.signalled;
    const number = this.offsets[kernel] + tb;
    for (let i = ptr[number]; i < ptr[number + 1]; i += 1) {
      for (let c = this.consumer_ptr[items[i]]; c < this.consumer_ptr[items[i] + 1]; c += 1) {
        made.add(this.allConsumers[c]);
      }
    }
    return made;
  }
}

/** Return, for each of `count` members, the lists that it is in: lists are members[ptr[n]] to ptr[n + 1]. */
function inverted(ptr, members, count) {
  const made = new Uint32Array(count + 1);
  for (const member of members) made[member + 1] += 1;
  for (let i = 0; i < count; i += 1) made[i + 1] += made[i];
  const next = made.slice();
  const items = new Uint32Array(members.length);
  for (let n = 0; n + 1 < ptr.length; n += 1) {
    for (let i = ptr[n]; i < ptr[n + 1]; i += 1) {
      items[next[members[i]]] = n;
      next[members[i]] += 1;
    }
  }
  return { ptr: made, items };
}

const graphs = new Map();

/** Return the graph of a file's job, read once; null if the page has none. */
function graphOf(file) {
  if (!graphs.has(file)) {
    graphs.set(file, readBlob(`edges${file}`).then((columns) => columns && new Graph(columns)));
  }
  return graphs.get(file);
}
