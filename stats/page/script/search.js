// What the search box understands.

/**
 * Read a query: `12:3` is TB 3 of kernel 12, `12` kernel 12, `sm 5` an SM, anything else a part of a kernel's name.
 *
 * Returns { kind: "tb", kernel, tb } | { kind: "kernels", found: Set, list } | { kind: "sm", sm } | null for none.
 */
function readQuery(text, run) {
  const query = text.trim().toLowerCase();
  if (!query) return null;
  const tb = /^(?:kernel\s*|k)?(\d+)\s*:\s*(?:tb\s*)?(\d+)$/.exec(query);
  if (tb) return { kind: "tb", kernel: Number(tb[1]), tb: Number(tb[2]) };
  const sm = /^sm\s*(\d+)$/.exec(query);
  if (sm) return { kind: "sm", sm: Number(sm[1]) };
  const number = /^(?:kernel\s*|k)?(\d+)$/.exec(query);
  const list = [];
  const names = run.about.names.map((name) => name.toLowerCase().includes(query));
  for (let k = 0; k < run.kernels.count; k += 1) {
    if (number ? run.kernels.kernel[k] === Number(number[1]) : names[run.kernels.name[k]]) list.push(k);
  }
  return { kind: "kernels", found: new Set(list), list };
}

/** Say what was found. */
function describeMatch(match, run) {
  if (!match) return "";
  if (match.kind === "tb") {
    if (run.find(match.kernel, match.tb) >= 0) return `TB ${match.tb} of kernel ${match.kernel}`;
    return `no TB ${match.tb} of kernel ${match.kernel} in the timeline`;
  }
  if (match.kind === "sm") return run.sms.includes(match.sm) ? `SM ${match.sm}` : `no SM ${match.sm} in the timeline`;
  if (!match.list.length) return "no such kernel";
  return formatCount(match.list.length, "launch", "launches");
}
