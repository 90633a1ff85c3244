// Packs, as pack.py writes them: gzip of a header's size, the header in JSON,
// {name: bytes}, and the files. Compressing them together makes them a tenth smaller.

/** The uncompressed bytes. */
export async function unzipped(body) {
  const plain = body.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

const PREPARE = `
import builtins, dataclasses, marshal

made = {}

def add(path):
    with open(path, "rb") as file:
        made.update(marshal.load(file))

def run(text, scope, local):
    builtins.exec(made[text] if strict else made.get(text, text), scope, local)

dataclasses.exec = run
add`;

/**
 * Let dataclasses take the code of their methods from the packs' files under made/.
 * @param strict whether missing code is an error
 * @returns {add(path)}: adds such a file
 */
export function prepare(python, strict = false) {
  const globals = python.toPy({ strict });
  return { add: python.runPython(PREPARE, { globals }) };
}

/** Write a pack's files into a folder of Python's file system. Returns their names. */
export function unpack(FS, folder, content) {
  const at = content.byteOffset;
  let start = 4 + new DataView(content.buffer, at).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(content.subarray(4, start)));
  for (const [name, size] of Object.entries(header)) {
    const path = `${folder}/${name}`;
    FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    FS.writeFile(path, content.subarray(start, start + size));
    start += size;
  }
  return Object.keys(header);
}
