// What TBs hold in a short range, from the TBs themselves: finer than the intervals that the page stores.

const ZOOM_STEP = 2; // pixels of an interval

/**
 * Return the series `key` (busy_sms or resident_tbs) of a run from `low` to `high` ns in `bins` intervals.
 *
 * Null where the page lacks some of the run's TBs.
 */
function zoomedSeries(run, about, low, high, bins) {
  if (!run.tbs || run.about.shown !== run.about.tbs || !(high > low)) return null;
  const edges = Float64Array.from({ length: bins + 1 }, (_, i) => low + (i * (high - low)) / bins);
  const values = new Float64Array(bins);
  const add = (begin, end) => addSpan(values, begin, end, low, (high - low) / bins);
  for (let sm = 0; sm < run.sms.length; sm += 1) {
    const spans = spansOf(run, sm, low, high);
    if (about.key === "resident_tbs") for (const [begin, end] of spans) add(begin, end);
    else addUnion(spans, add);
  }
  const whole = ((high - low) / bins) * run.about.series_sms;
  for (let i = 0; i < bins; i += 1) values[i] /= whole;
  return new Series(about, edges, values);
}

/** Return when the TBs of an SM begin and end, as far as they overlap a range. */
function spansOf(run, sm, low, high) {
  const { first, start, length } = run.tbs;
  const made = [];
  for (let row = sm * run.slots; row < (sm + 1) * run.slots; row += 1) {
    let [from, to] = [first[row], first[row + 1]];
    const end = to;
    while (from < to) { // the first TB that ends after the range begins
      const middle = (from + to) >> 1;
      if ((start[middle] + length[middle]) * run.tick <= low) from = middle + 1;
      else to = middle;
    }
    for (let i = from; i < end && start[i] * run.tick < high; i += 1) {
      made.push([start[i] * run.tick, (start[i] + length[i]) * run.tick]);
    }
  }
  return made;
}

/** Call `add` with the times in which at least one span lasts. */
function addUnion(spans, add) {
  spans.sort((a, b) => a[0] - b[0]);
  let [begin, end] = [0, -1];
  for (const [from, to] of spans) {
    if (from > end) {
      if (end > begin) add(begin, end);
      [begin, end] = [from, to];
    } else if (to > end) {
      end = to;
    }
  }
  if (end > begin) add(begin, end);
}

/** Add the time of a span to intervals of `width` ns from `low` on. */
function addSpan(values, begin, end, low, width) {
  const from = Math.max(0, (begin - low) / width);
  const to = Math.min(values.length, (end - low) / width);
  for (let i = Math.floor(from); i < to; i += 1) values[i] += (Math.min(to, i + 1) - Math.max(from, i)) * width;
}
