// Arrows between a TB, the TBs that it needs and those that need it.

const MOST_ARROWS = 400; // of each kind; beyond it every n-th is drawn
const LAST_COLOUR = "#D55E00";
const NEED_COLOUR = "#222";
const USER_COLOUR = "#0072B2";

/** Draw the arrows of a TB. `graph`: of its job, or null: then only the TB that made it ready is known. */
function drawArrows(context, timeline, index, graph) {
  const { run } = timeline;
  const facts = run.facts(index);
  const [x, y, width, height] = timeline.box(index);
  const here = [x, y + height / 2];
  if (graph && run.about.graph) {
    context.lineWidth = 1;
    for (const [number, kinds] of thinned([...graph.producersOf(facts.kernel, facts.tb)])) {
      const place = run.find(...graph.place(number));
      context.setLineDash(kinds & 1 ? [] : [4, 3]);
      if (place >= 0) curve(context, endOf(timeline.box(place)), here, NEED_COLOUR, 0.45);
    }
    context.setLineDash([1, 3]);
    const after = [x + width, y + height / 2];
    for (const number of thinned([...graph.consumersOf(facts.kernel, facts.tb)])) {
      const place = run.find(...graph.place(number));
      if (place >= 0) curve(context, after, startOf(timeline.box(place)), USER_COLOUR, 0.6);
    }
    context.setLineDash([]);
  }
  const last = facts.last ? run.find(...facts.last) : -1;
  if (last < 0) return;
  const from = endOf(timeline.box(last));
  context.lineWidth = 4;
  curve(context, from, here, "#fff", 0.9);
  context.lineWidth = 2;
  curve(context, from, here, LAST_COLOUR, 1);
  head(context, here, LAST_COLOUR);
}

function endOf([x, y, width, height]) {
  return [x + width, y + height / 2];
}

function startOf([x, y, , height]) {
  return [x, y + height / 2];
}

/** Return at most MOST_ARROWS items, evenly chosen. */
function thinned(items) {
  const every = Math.ceil(items.length / MOST_ARROWS);
  return every > 1 ? items.filter((_, number) => number % every === 0) : items;
}

function curve(context, [x0, y0], [x1, y1], colour, alpha) {
  const bend = Math.max(12, Math.abs(x1 - x0) / 2);
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  context.stroke();
  context.globalAlpha = 1;
}

/** Draw the head of an arrow that points right. */
function head(context, [x, y], colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 8, y - 4);
  context.lineTo(x - 8, y + 4);
  context.fill();
}
