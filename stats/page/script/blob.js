// Columns of numbers that the page holds as text: stats/page/blob.py writes them.

const TYPES = { u1: Uint8Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

/** Return the bytes of base64 text. */
function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** Return the columns of a blob by name, as typed arrays; null if the page has no such blob. */
async function readBlob(name) {
  const source = document.getElementById(`blob-${name}`);
  if (!source) return null;
  const stream = new Blob([fromBase64(source.textContent.trim())]).stream();
  const inflated = await new Response(stream.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
  source.textContent = ""; // the text is not needed any more
  const bytes = new Uint8Array(inflated);
  const columns = {};
  let at = 0;
  for (const [column, kind, length] of PAGE.blobs[name]) {
    const size = TYPES[kind].BYTES_PER_ELEMENT;
    columns[column] = unshuffled(bytes, at, TYPES[kind], length);
    if (kind === "u4") accumulate(columns[column]);
    at += size * length;
  }
  return columns;
}

/** Return a column whose bytes are stored by place: all lowest bytes, then all second ones, ... */
function unshuffled(bytes, at, Kind, length) {
  const size = Kind.BYTES_PER_ELEMENT;
  if (size === 1) return bytes.slice(at, at + length);
  if (size === 4) {
    const made = new Uint32Array(length);
    const [b, c, d] = [at + length, at + 2 * length, at + 3 * length];
    for (let i = 0; i < length; i += 1) {
      made[i] = bytes[at + i] | (bytes[b + i] << 8) | (bytes[c + i] << 16) | (bytes[d + i] << 24);
    }
    return Kind === Uint32Array ? made : new Kind(made.buffer);
  }
  const made = new Uint8Array(size * length);
  for (let place = 0; place < size; place += 1) {
    const from = at + place * length;
    for (let i = 0; i < length; i += 1) made[i * size + place] = bytes[from + i];
  }
  return new Kind(made.buffer);
}

/** Turn differences into values, in place; sums wrap at 32 bits. */
function accumulate(values) {
  for (let i = 1; i < values.length; i += 1) values[i] += values[i - 1];
}
