// Pointer and keyboard of a timeline. The keys of Perfetto (W, A, S, D) work, too.

const STEP = 0.2; // of the visible range that an arrow key moves
const ZOOM = 1.5;
const WHEEL_HINT_MS = 1500;

/** Connect a timeline with pointer, wheel and keyboard. */
function listen(timeline) {
  const canvas = timeline.over;
  canvas.addEventListener("wheel", (event) => wheel(timeline, event), { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (pressKey(timeline, event)) event.preventDefault();
  });
  canvas.addEventListener("dblclick", (event) => {
    const index = timeline.indexAt(event.offsetX, event.offsetY);
    if (index < 0) timeline.axis.reset();
    else zoomTo(timeline, index);
  });
  canvas.addEventListener("pointerleave", () => timeline.shared.hover(timeline, -1));
  drag(timeline);
}

/** Zoom by the wheel: only where the picture has the focus or Ctrl is held, so that the page still scrolls. */
function wheel(timeline, event) {
  if (document.activeElement !== timeline.over && !event.ctrlKey && !event.metaKey) {
    timeline.shared.hint("Click the timeline, then scroll to zoom. Ctrl + scroll works at once.", WHEEL_HINT_MS);
    return;
  }
  event.preventDefault();
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  const lines = (sideways ? event.deltaX : event.deltaY) * (event.deltaMode === 1 ? 20 : 1);
  if (event.shiftKey) {
    const around = timeline.top + ((event.offsetY - HEAD) / timeline.plotHeight) * (timeline.bottom - timeline.top);
    timeline.zoomSms(Math.exp(-(event.deltaY || event.deltaX) / 300), around);
  } else if (sideways) {
    timeline.axis.pan(lines / timeline.plotWidth);
  } else {
    const around = timeline.axis.toTime(event.offsetX - GUTTER, timeline.plotWidth);
    timeline.axis.zoom(Math.exp(-lines / 300), around);
  }
}

/** Let wheel, dragging and double click move the time axis of a chart, as on timelines. */
function controlAxis(canvas, axis) {
  const width = () => Math.max(1, canvas.clientWidth - GUTTER);
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) axis.pan(event.deltaX / width());
    else axis.zoom(Math.exp(-event.deltaY / 300), axis.toTime(event.offsetX - GUTTER, width()));
  }, { passive: false });
  canvas.addEventListener("dblclick", () => axis.reset());
  let begun = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    begun = { x: event.offsetX, low: axis.low, high: axis.high };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!begun) return;
    const shift = ((event.offsetX - begun.x) / width()) * (begun.high - begun.low);
    axis.show(begun.low - shift, begun.high - shift);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { begun = null; });
}

/** Pan by dragging, choose a range by dragging with Shift, pinch with two fingers; a click chooses a TB. */
function drag(timeline) {
  const canvas = timeline.over;
  const fingers = new Map();
  let begun = null;
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event.offsetX);
    canvas.setPointerCapture(event.pointerId);
    const { low, high } = timeline.axis;
    begun = { x: event.offsetX, y: event.offsetY, low, high, top: timeline.top, bottom: timeline.bottom, moved: false };
    begun.range = event.shiftKey && event.offsetX >= GUTTER;
    begun.spread = spread(fingers);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!begun || !fingers.has(event.pointerId)) {
      timeline.shared.hover(timeline, timeline.indexAt(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
      return;
    }
    fingers.set(event.pointerId, event.offsetX);
    const by = event.offsetX - begun.x;
    if (Math.abs(by) + Math.abs(event.offsetY - begun.y) > 3) begun.moved = true;
    if (!begun.moved) return;
    const width = begun.high - begun.low;
    if (fingers.size > 1) {
      const factor = Math.max(spread(fingers), 1) / Math.max(begun.spread, 1);
      const around = begun.low + ((begun.x - GUTTER) / timeline.plotWidth) * width;
      timeline.axis.show(around - (around - begun.low) / factor, around + (begun.high - around) / factor);
    } else if (begun.range) {
      timeline.shared.band = [begun.x, event.offsetX].sort((a, b) => a - b);
      timeline.drawOver();
    } else {
      const shift = (by / timeline.plotWidth) * width;
      timeline.axis.show(begun.low - shift, begun.high - shift);
      const sms = ((event.offsetY - begun.y) / timeline.plotHeight) * (begun.bottom - begun.top);
      if (begun.bottom - begun.top < timeline.run.sms.length) timeline.showSms(begun.top - sms, begun.bottom - sms);
    }
  });
  const finish = (event) => {
    fingers.delete(event.pointerId);
    if (!begun) return;
    const { band } = timeline.shared;
    timeline.shared.band = null;
    if (begun.range && band && band[1] - band[0] > 3) {
      const [low, high] = band.map((x) => timeline.axis.toTime(x - GUTTER, timeline.plotWidth));
      timeline.axis.show(low, high);
    } else if (!begun.moved && event.type === "pointerup") {
      timeline.shared.choose(timeline.run, timeline.indexAt(event.offsetX, event.offsetY));
    }
    begun = null;
    timeline.drawOver();
  };
  canvas.addEventListener("pointerup", finish);
  canvas.addEventListener("pointercancel", finish);
}

function spread(fingers) {
  const places = [...fingers.values()];
  return Math.max(...places) - Math.min(...places);
}

/** Show a TB and as much again on both sides. */
function zoomTo(timeline, index) {
  const { start, length } = timeline.run.tbs;
  const [low, wide] = [start[index] * timeline.run.tick - timeline.shift, Math.max(1, length[index] * timeline.run.tick)];
  timeline.axis.show(low - wide, low + 2 * wide);
}

/** Do what a key asks for; returns whether it asks for anything. */
function pressKey(timeline, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const { axis, shared } = timeline;
  const sms = (timeline.bottom - timeline.top) * STEP;
  const keys = {
    ArrowLeft: () => axis.pan(-STEP),
    ArrowRight: () => axis.pan(STEP),
    ArrowUp: () => (event.shiftKey ? timeline.zoomSms(ZOOM) : timeline.showSms(timeline.top - sms, timeline.bottom - sms)),
    ArrowDown: () => (event.shiftKey ? timeline.zoomSms(1 / ZOOM) : timeline.showSms(timeline.top + sms, timeline.bottom + sms)),
    "+": () => axis.zoom(ZOOM),
    "=": () => axis.zoom(ZOOM),
    "-": () => axis.zoom(1 / ZOOM),
    _: () => axis.zoom(1 / ZOOM),
    0: () => shared.showAll(),
    Home: () => axis.pan(-1e9),
    End: () => axis.pan(1e9),
    a: () => axis.pan(-STEP),
    d: () => axis.pan(STEP),
    w: () => axis.zoom(ZOOM),
    s: () => axis.zoom(1 / ZOOM),
    "]": () => shared.step(timeline, 1),
    "[": () => shared.step(timeline, -1),
    p: () => shared.chooseProducer(timeline),
    f: () => shared.focusChosen(timeline),
    Escape: () => shared.choose(timeline.run, -1),
  };
  const action = keys[event.key] ?? keys[event.key.toLowerCase()];
  if (!action) return false;
  action();
  return true;
}
