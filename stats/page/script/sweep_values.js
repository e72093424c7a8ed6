// Quantities of a sweep: names, units and digits are those of the summary.

/** Return a time of µs with two digits after the point. */
function formatRunTime(us) {
  for (const [limit, scale, unit] of [[1e3, 1, "µs"], [1e6, 1e3, "ms"]]) {
    if (Math.abs(us) < limit) return `${(us / scale).toFixed(2)}${NBSP}${unit}`;
  }
  return `${(us / 1e6).toFixed(3)}${NBSP}s`;
}

const percent = (value) => `${formatNumber(100 * value)}${NBSP}%`;

// head, text of a value, text of a tick
const SWEEP_VALUES = {
  time_us: ["time", formatRunTime, (us) => formatTime(us * 1e3)],
  speedup: ["speedup", (value) => `${value.toFixed(3)}x`, (value) => `${formatNumber(value)}x`],
  gap_won: ["gap won", formatShare, percent],
  sm_idle: ["SM idle", formatShare, percent],
  alu_utilization: ["arithmetic pipe", formatShare, percent],
  dram_bytes: ["DRAM traffic", formatBytes, formatBytes],
  l2_bytes: ["L2 traffic", formatBytes, formatBytes],
  energy_j: ["energy", (joule) => `${(1e3 * joule).toFixed(2)}${NBSP}mJ`, (joule) => `${formatNumber(1e3 * joule)}${NBSP}mJ`],
};

function sweepHead(name) {
  return SWEEP_VALUES[name][0];
}

/** Return a value as text; null: there is none. */
function sweepText(name, value) {
  return value === null ? "–" : SWEEP_VALUES[name][1](value);
}
