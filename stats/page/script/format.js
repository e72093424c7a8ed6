// Numbers and times as text.

const NBSP = "\u00a0"; // between a number and its unit

/** Return a number with at most three significant digits, thousands apart. */
function formatNumber(value) {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}

/** Return a time of ns with a unit that keeps it readable. */
function formatTime(ns) {
  if (!Number.isFinite(ns)) return "–";
  const size = Math.abs(ns);
  if (size < 0.5) return `0${NBSP}ns`;
  if (size < 999.5) return `${formatNumber(ns)}${NBSP}ns`;
  if (size < 999.5e3) return `${formatNumber(ns / 1e3)}${NBSP}µs`;
  if (size < 999.5e6) return `${formatNumber(ns / 1e6)}${NBSP}ms`;
  return `${formatNumber(ns / 1e9)}${NBSP}s`;
}

/** Return a moment of ns in µs, exact to 1 ns: two moments of a long run stay distinguishable. */
function formatMoment(ns) {
  const text = (ns / 1e3).toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 });
  return `${text}${NBSP}µs`;
}

/** Return a signed time difference of ns. */
function formatDifference(ns) {
  return ns > 0 ? `+${formatTime(ns)}` : formatTime(ns).replace("-", "−");
}

/** Return a number of bytes with a unit, in three digits. */
function formatBytes(count) {
  for (const [unit, scale] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["KB", 1e3]]) {
    if (count < scale) continue;
    const value = count / scale;
    const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return `${value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}${NBSP}${unit}`;
  }
  return `${formatNumber(count)}${NBSP}B`;
}

/** Return a share as a percentage. */
function formatShare(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(1)}${NBSP}%` : "–";
}

/** Return a count of things: `1 TB`, `2,000 TBs`. */
function formatCount(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-US")}${NBSP}${count === 1 ? one : many}`;
}

/** Return how many of a kernel's TBs: `all 4 TBs`, `1 of 4 TBs`, `the TB` of a kernel with one. */
function formatPart(count, all) {
  if (all === 1) return "the TB";
  return count === all ? `all ${formatCount(all, "TB")}` : `${count.toLocaleString("en-US")} of ${formatCount(all, "TB")}`;
}

/** Return round numbers of the range [low, high], about `count` of them. */
function roundTicks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0)) return [];
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = base * ([1, 2, 5, 10].find((m) => m * base >= raw) ?? 10);
  const made = [];
  for (let n = Math.ceil(low / step); n * step <= high; n += 1) made.push(n * step);
  return made;
}

/** Return the label of a tick of ns on an axis whose ticks are `step` apart. */
function formatTick(ns, step) {
  const [unit, scale] = step >= 1e6 ? ["ms", 1e6] : step >= 10 ? ["µs", 1e3] : ["ns", 1];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9));
  const text = (ns / scale).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${text}${NBSP}${unit}`;
}

/** Return an element with attributes and children; text is never read as HTML. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
