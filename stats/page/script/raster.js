// Draws the TBs of a run into pixels. A pixel that TBs fill in part is as pale as the part is small, so idle
// time shows at any zoom. Where an SM has too few pixels for its slots, a pixel shows the slot that is filled most.

const WHITE = 255;
const PALEST = 0.18; // of the least that is drawn
const GAP_FROM = 3; // pixels of an SM, from which on a line stands between SMs
const SLOT_PIXELS = 2; // of a slot, at the least, for slots to be drawn apart

/**
 * Fill `pixels` (packed 0xAABBGGRR, width x height) with a part of a run.
 *
 * `view`: low and high in ns; top and bottom in SMs, fractions too; `colours`: packed 0xBBGGRR by kernel, or by
 * TB where `byTb` is set. `scratch` keeps arrays between calls.
 */
function rasterise(run, view, pixels, width, height, scratch) {
  pixels.fill(0xffffffff);
  if (!run.count || width < 1 || height < 1) return;
  if (scratch.width !== width) {
    Object.assign(scratch, {
      width,
      filled: new Float32Array(width), // by the row that fills most
      colour: new Uint32Array(width),
      mine: new Float32Array(width), // by the row that is drawn
      largest: new Float32Array(width), // by one of its TBs
      paint: new Uint32Array(width), // of that TB
    });
  }
  const lane = height / (view.bottom - view.top);
  const gap = lane >= GAP_FROM ? 1 : 0;
  const last = Math.min(run.sms.length, Math.ceil(view.bottom));
  for (let sm = Math.max(0, Math.floor(view.top)); sm < last; sm += 1) {
    const y = Math.round((sm - view.top) * lane);
    const bottom = Math.max(y + 1, Math.round((sm + 1 - view.top) * lane) - gap);
    const bands = bandsOf(run, bottom - y);
    for (let band = 0; band < bands; band += 1) {
      const [from, to] = bands === 1 ? [0, run.slots] : [band, band + 1];
      scratch.filled.fill(0);
      for (let slot = from; slot < to; slot += 1) fillRow(run, view, sm * run.slots + slot, scratch);
      const y0 = y + Math.floor((band * (bottom - y)) / bands);
      const y1 = y + Math.floor(((band + 1) * (bottom - y)) / bands);
      paintBand(scratch, pixels, width, Math.max(0, y0), Math.min(height, y1));
    }
  }
}

/** Return into how many rows an SM that is `pixels` high is divided: its slots, or one. */
function bandsOf(run, pixels) {
  return pixels >= run.slots * SLOT_PIXELS ? run.slots : 1;
}

/** Draw the TBs of a row (a slot of an SM) into the pixels of a band, where they fill more than other rows do. */
function fillRow(run, view, row, scratch) {
  const { first, start, length, kernel } = run.tbs;
  const { width, filled, colour, mine, largest, paint } = scratch;
  const scale = (width * run.tick) / (view.high - view.low);
  const shift = (view.low * width) / (view.high - view.low);
  let [low, high] = [first[row], first[row + 1]];
  const end = high;
  const from = view.low / run.tick;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle] + length[middle] <= from) low = middle + 1;
    else high = middle;
  }
  let [begin, stop] = [width, -1]; // pixels that the row touches
  for (let i = low; i < end; i += 1) {
    let x0 = start[i] * scale - shift;
    if (x0 >= width) break;
    let x1 = Math.min(width, x0 + length[i] * scale);
    x0 = Math.max(0, x0);
    if (x1 <= x0) x1 = x0 + 0.01; // a TB without length shows, too
    const own = view.colours[view.byTb ? i : kernel[i]];
    const [p, q] = [Math.floor(x0), Math.min(width - 1, Math.floor(x1))];
    for (let x = p; x <= q; x += 1) {
      const part = Math.min(x + 1, x1) - Math.max(x, x0);
      mine[x] += part;
      if (part > largest[x]) {
        largest[x] = part;
        paint[x] = own;
      }
    }
    begin = Math.min(begin, p);
    stop = Math.max(stop, q);
  }
  for (let x = begin; x <= stop; x += 1) {
    if (mine[x] > filled[x]) {
      filled[x] = mine[x];
      colour[x] = paint[x];
    }
    mine[x] = 0;
    largest[x] = 0;
  }
}

/** Paint lines y0 to y1 from the pixels of a band. */
function paintBand(scratch, pixels, width, y0, y1) {
  if (y1 <= y0) return;
  const { filled, colour } = scratch;
  const begin = y0 * width;
  for (let x = 0; x < width; x += 1) {
    if (filled[x] === 0) continue;
    const strength = PALEST + (1 - PALEST) * Math.min(1, filled[x]);
    const base = WHITE * (1 - strength);
    const packed = colour[x];
    const red = base + (packed & 255) * strength;
    const green = base + ((packed >> 8) & 255) * strength;
    const blue = base + ((packed >> 16) & 255) * strength;
    pixels[begin + x] = 0xff000000 | (blue << 16) | (green << 8) | red;
  }
  for (let y = y0 + 1; y < y1; y += 1) pixels.copyWithin(y * width, begin, begin + width);
}
