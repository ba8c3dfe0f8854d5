// Columns of whole numbers: base64, gzip, variable-length integers (written by columns.rs).

async function unpack(text) {
  const raw = atob(text.trim()), packed = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) packed[i] = raw.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Columns by table and name: `event.start` is `.event.start`, a column without a table is `.access.all`. */
async function decode(heads, text) {
  const bytes = await unpack(text), out = {};
  let at = 0;
  for (const { name, count, delta } of heads) {
    const wide = new Float64Array(count);
    let before = 0, low = 0, high = 0;
    for (let i = 0; i < count; i++) {
      const first = bytes[at++];
      let half;
      if (first < 128) half = (first >> 1) ^ -(first & 1);
      else {
        let byte = first, value = byte & 127, shift = 7;
        // Beyond 28 bits the operators on integers are not wide enough.
        while (byte > 127 && shift < 28) { byte = bytes[at++]; value |= (byte & 127) << shift; shift += 7; }
        if (byte < 128) half = (value >> 1) ^ -(value & 1);
        else {
          for (let power = 2 ** shift; byte > 127; power *= 128) { byte = bytes[at++]; value += (byte & 127) * power; }
          half = value % 2 ? -(value + 1) / 2 : value / 2;
        }
      }
      before = delta ? before + half : half;
      wide[i] = before;
      if (before < low) low = before; else if (before > high) high = before;
    }
    const [table, column = "all"] = name.split(".");
    (out[table] ??= {})[column] = low < -(2 ** 31) || high >= 2 ** 31 ? wide : new Int32Array(wide);
  }
  return out;
}
