// Packs, as pack.py writes them: gzip of a header's size, the header in JSON,
// {name: bytes}, and the files. One compression for all takes a tenth less.

/** The bytes behind gzip. */
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
 * Let dataclasses take the code of their methods from what packs have under made/.
 * @param strict whether one that is not there is an error
 * @returns {add(path)}: makes such a file known
 */
export function prepare(python, strict = false) {
  const globals = python.toPy({ strict });
  return { add: python.runPython(PREPARE, { globals }) };
}

/** Write the files of a pack into a folder of Python's file system; gives their names. */
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
