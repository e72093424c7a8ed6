"""What tests ask a report in the browser, as JavaScript."""

from __future__ import annotations

# elements with text of their own that are smaller than 11 px, as [what, size]
SMALL_TEXT = """() => [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility()
  && [...each.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim()))
  .map((each) => [each.outerHTML.slice(0, 90), parseFloat(getComputedStyle(each).fontSize)])
  .filter(([, size]) => size < 11)"""

# elements beyond the width of the window that do not lie in something that scrolls or cuts, as [what, right]
BEYOND = """() => [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility())
  .filter((each) => {
    for (let up = each.parentElement; up; up = up.parentElement) {
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(up).overflowX)) return false;
    }
    return true;
  })
  .map((each) => [each.outerHTML.slice(0, 90), each.getBoundingClientRect()])
  .filter(([, box]) => box.width && (box.right > innerWidth + 0.5 || box.left < -0.5))
  .map(([what, box]) => [what, box.left, box.right])"""

# text whose contrast to what is behind it is below 4.5, as [what, contrast]
LOW_CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (each) => {
    for (let up = each; up; up = up.parentElement) {
      const colour = parse(getComputedStyle(up).backgroundColor);
      if (colour.length && colour[3] !== 0) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility()
    && [...each.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim()))
    .map((each) => {
      const [x, y] = [light(parse(getComputedStyle(each).color)), light(behind(each))].sort((a, b) => b - a);
      return [each.outerHTML.slice(0, 90), (x + 0.05) / (y + 0.05)];
    }).filter(([, contrast]) => contrast < 4.5);
}"""

# controls without a name for screen readers
NAMELESS = """() => [...document.querySelectorAll("button, input, select, a, canvas[tabindex]")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim() || each.labels?.length))
  .map((each) => each.outerHTML.slice(0, 90))"""

# the longest redraw of 16 zooms, each the shortest of some tries, of which a good one ends them: ms from the
# change until its frame is done
REDRAWS = """async ([tries, good]) => {
  const section = await pysimReport.ready;
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const { axis } = section;
  let longest = 0;
  for (let step = 0; step < 16; step += 1) {
    let best = Infinity;
    for (let turn = 0; turn < tries && best > good; turn += 1) {
      axis.reset();
      await frame();
      await frame();
      const began = performance.now();
      axis.zoom(1.5 ** (step + 1), axis.end * 0.37);
      await frame();
      best = Math.min(best, performance.now() - began);
    }
    longest = Math.max(longest, best);
  }
  axis.reset();
  await frame();
  return longest;
}"""

# low and high of the time axis, as shares of the whole; SMs shown; the chosen TB
STATE = """async () => {
  const section = await pysimReport.ready;
  const { axis, shared } = section;
  const first = shared.timelines[0];
  return {
    low: axis.low / axis.end, high: axis.high / axis.end, sms: first.bottom - first.top, top: first.top,
    chosen: shared.chosen, mode: shared.mode, query: shared.query,
  };
}"""

# whether the focus is on a timeline, the search, or what it is on
FOCUS = """() => document.activeElement.matches("canvas.over") ? "timeline"
  : document.activeElement.dataset.part ?? document.activeElement.tagName"""

# share of pixels of the first timeline that are not white
INK = """() => {
  const canvas = document.querySelector("#timeline canvas.base");
  const { data } = canvas.getContext("2d").getImageData(60, 30, canvas.width - 70, canvas.height - 40);
  let ink = 0;
  for (let i = 0; i < data.length; i += 4) ink += data[i] + data[i + 1] + data[i + 2] < 750;
  return (4 * ink) / data.length;
}"""
