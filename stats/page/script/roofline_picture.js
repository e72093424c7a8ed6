// How the roofline is drawn: axes, ceilings, marks.

/** Draw the axes; `range`: powers of ten. */
function roofAxes(context, box, range, toX, toY) {
  context.fillStyle = CHART_INK;
  context.strokeStyle = CHART_GRID;
  context.beginPath();
  context.textAlign = "center";
  for (const value of decades(range.x, (box.right - box.left) / 60)) {
    const x = Math.round(toX(value)) + 0.5;
    context.moveTo(x, box.top);
    context.lineTo(x, box.bottom);
    context.fillText(formatNumber(value), x, box.bottom + 11);
  }
  context.textAlign = "right";
  for (const value of decades(range.y, (box.bottom - box.top) / 34)) {
    const y = Math.round(toY(value)) + 0.5;
    context.moveTo(box.left, y);
    context.lineTo(box.right, y);
    context.fillText(formatNumber(value), box.left - 6, y);
  }
  context.stroke();
  context.strokeStyle = "#888";
  context.strokeRect(box.left + 0.5, box.top + 0.5, box.right - box.left, box.bottom - box.top);
  context.textAlign = "center";
  context.fillText("warp instructions a 32 B sector", (box.left + box.right) / 2, box.bottom + 29);
  context.save();
  context.translate(10, (box.top + box.bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.fillText("10⁹ warp instructions/s", 0, 0);
  context.restore();
}

/** Return round numbers of a range of powers of ten: 1, 2, 5 of each where there is room for `count`. */
function decades([low, high], count) {
  const steps = (high - low) * 3 <= count ? [1, 2, 5] : [1];
  const made = [];
  for (let power = Math.floor(low); power <= high; power += 1) {
    for (const step of steps) {
      const value = step * 10 ** power;
      if (Math.log10(value) >= low && Math.log10(value) <= high) made.push(value);
    }
  }
  return made;
}

/** Draw lines of bandwidths up to the highest rate, and rates from the line of the highest bandwidth of L2 on. */
function roofCeilings(context, ceilings, box, range, toX, toY) {
  const rates = ceilings.filter(({ of }) => of === "rate").sort((a, b) => b.value - a.value);
  const slopes = ceilings.filter(({ of }) => of !== "rate");
  const peak = rates[0]?.value ?? 10 ** range.y[1];
  const steepest = Math.max(0, ...slopes.map(({ value }) => value));
  context.lineWidth = 1.5;
  let lastY = -Infinity;
  for (const { value, text } of rates) {
    const y = toY(value);
    context.strokeStyle = "#333";
    context.setLineDash(value === peak ? [] : [5, 3]);
    context.beginPath();
    context.moveTo(steepest ? toX((value * ROOF_SECTOR) / steepest) : box.left, y);
    context.lineTo(box.right, y);
    context.stroke();
    // below the line where the one above it leaves no room
    const below = y - lastY < 15;
    roofLabel(context, text, box.right - 6, below ? y + 8 : y - 8, "right");
    lastY = below ? y + 8 : y;
  }
  for (const { of, value, text } of slopes) {
    const [x0, x1] = [10 ** range.x[0], (peak * ROOF_SECTOR) / value];
    const [from, to] = [[toX(x0), toY((x0 * value) / ROOF_SECTOR)], [toX(x1), toY(peak)]];
    context.strokeStyle = of === "dram" ? "#777" : "#333";
    context.setLineDash(of === "dram" ? [2, 3] : []);
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    slopeLabel(context, text, from, to, box);
  }
  context.setLineDash([]);
}

/** Write along a slope, near its upper end. */
function slopeLabel(context, text, from, to, box) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  const wide = context.measureText(text).width;
  const low = Math.min(to[0], box.right);
  // its upper corner, half a line above the slope, stays below the ceiling
  const away = wide / 2 + 14 + (angle < 0 ? 16 / Math.tan(-angle) : 0);
  const x = low - Math.cos(angle) * away;
  const y = from[1] + ((x - from[0]) / (to[0] - from[0])) * (to[1] - from[1]);
  if (!Number.isFinite(x + y)) return;
  if (x - (Math.cos(angle) * wide) / 2 < box.left) { // no room along the line: at its end
    roofLabel(context, text, Math.max(to[0], box.left + 4), to[1] - 8, "left");
    return;
  }
  context.save();
  context.translate(x, y);
  context.rotate(angle);
  roofLabel(context, text, 0, -8, "center");
  context.restore();
}

function roofLabel(context, text, x, y, align) {
  context.textAlign = align;
  context.lineWidth = 3;
  context.strokeStyle = "#fffd";
  context.save();
  context.setLineDash([]);
  context.strokeText(text, x, y);
  context.restore();
  context.fillStyle = "#222";
  context.fillText(text, x, y);
  context.lineWidth = 1.5;
}

/** Draw a mark: filled, or only its outline, through which others show. */
function drawShape(context, shape, [x, y], size, colour, open) {
  context.beginPath();
  if (shape === "circle") context.arc(x, y, size, 0, 7);
  if (shape === "square") context.rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8);
  const corners = { triangle: [[0, -1.2], [1.1, 0.8], [-1.1, 0.8]], diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]] }[shape];
  corners?.forEach(([across, down], number) => context[number ? "lineTo" : "moveTo"](x + across * size, y + down * size));
  context.closePath();
  if (!open) {
    context.fillStyle = `${colour}cc`;
    context.fill();
  }
  context.lineWidth = open ? 2 : 1.2;
  context.strokeStyle = open ? colour : "#000";
  context.stroke();
}

/** Return the mark of the run at a place, for legends. */
function shapeSample(place) {
  const canvas = element("canvas", { class: "shape", width: 32, height: 32, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  drawShape(context, ROOF_SHAPES[place], [8, 8], 5, "#555555", false);
  return canvas;
}
