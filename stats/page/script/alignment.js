// Which kernel of a run corresponds to which of another.

/**
 * Return pairs [kernel of a, kernel of b] in the order of a, and how many of each have no partner.
 *
 * Kernels are matched by number where both runs have the same names in the same order, else by name and how often
 * it was launched before.
 */
function alignKernels(a, b) {
  const names = (run) => Array.from({ length: run.kernels.count }, (_, k) => run.nameOf(k));
  const [first, second] = [names(a), names(b)];
  if (first.length === second.length && first.every((name, k) => name === second[k])) {
    return { pairs: first.map((_, k) => [k, k]), onlyA: 0, onlyB: 0 };
  }
  const places = new Map();
  second.forEach((name, k) => {
    if (!places.has(name)) places.set(name, []);
    places.get(name).push(k);
  });
  const used = new Map();
  const pairs = [];
  first.forEach((name, k) => {
    const nth = used.get(name) ?? 0;
    used.set(name, nth + 1);
    const other = places.get(name)?.[nth];
    if (other !== undefined) pairs.push([k, other]);
  });
  return { pairs, onlyA: first.length - pairs.length, onlyB: second.length - pairs.length };
}

/** Return rows of a comparison of two runs, a row a pair of kernels; times in ns. */
function compareKernels(a, b) {
  const { pairs, onlyA, onlyB } = alignKernels(a, b);
  const rows = pairs.map(([ka, kb]) => {
    const times = ([run, k]) => {
      const start = run.kernels.first_dispatch[k] * 1e3;
      const end = run.kernels.complete[k] * 1e3;
      return { start, end, length: end - start };
    };
    const [one, other] = [times([a, ka]), times([b, kb])];
    return { ka, kb, name: a.nameOf(ka), one, other, length: other.length - one.length, end: other.end - one.end };
  });
  return { rows, onlyA, onlyB };
}
