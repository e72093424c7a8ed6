// Colours: those of stats/pictures, which colour-blind readers can tell apart, too.

const PALETTE = PAGE.palette;
const STALL_COLOURS = PAGE.stall_colours;
const WAIT_COLOURS = { launch: "#E69F00", dependence: "#D55E00", slot: "#56B4E9", dispatch: "#CC79A7" };
const WAIT_NAMES = ["launch", "dependence", "slot", "dispatch"];
const DARKER = 0.74; // every second launch of a kernel name
const TINT = 0.5; // of the palette's colours, where there are more names than colours

/** Return [red, green, blue] of a colour #rrggbb. */
function rgb(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** Kernel names of all runs by number, in the order in which the runs have them: a name has one colour in the page. */
const NAME_NUMBERS = new Map();
for (const { names } of PAGE.runs) for (const name of names) if (!NAME_NUMBERS.has(name)) NAME_NUMBERS.set(name, NAME_NUMBERS.size);

/** Return a colour by number; beyond the palette its tints, then all again. */
function paletteColour(number) {
  const colour = PALETTE[number % PALETTE.length];
  return number % (2 * PALETTE.length) < PALETTE.length ? colour : tint(colour);
}

/** Return the colour of a kernel name. */
function nameColour(name) {
  return paletteColour(NAME_NUMBERS.get(name) ?? NAME_NUMBERS.size);
}

/** Return a colour made paler. */
function tint(colour) {
  const parts = rgb(colour).map((part) => Math.round(255 - TINT * (255 - part)).toString(16).padStart(2, "0"));
  return `#${parts.join("")}`;
}

/** Return a colour made darker. */
function darker(colour, factor = DARKER) {
  const parts = rgb(colour).map((part) => Math.round(part * factor).toString(16).padStart(2, "0"));
  return `#${parts.join("")}`;
}

/**
 * Return a colour for each kernel of a run, as packed numbers 0xBBGGRR.
 *
 * `mode`: "name", where launches of a name alternate in brightness, or "launch".
 */
function kernelColours(run, mode) {
  const made = new Uint32Array(run.kernels.count);
  const seen = new Map();
  const colours = run.about.names.map(nameColour);
  for (let k = 0; k < made.length; k += 1) {
    const name = run.kernels.name[k];
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    const base = mode === "launch" ? paletteColour(k) : (colours[name] ?? run.colourOf(k));
    const [red, green, blue] = rgb(mode === "name" && times % 2 ? darker(base) : base);
    made[k] = red | (green << 8) | (blue << 16);
  }
  return made;
}

/** Return the CSS colour of a packed number. */
function cssColour(packed) {
  return `rgb(${packed & 255},${(packed >> 8) & 255},${(packed >> 16) & 255})`;
}
