// A file takes a reader's progress elsewhere, or brings it here; and all of it can be
// erased. For pages with a score: progress.py wrote the panel.
"use strict";
{
  const { answers, guesses, progress } = Shardmath;
  const LARGEST = 5e6; // bytes: about what a browser keeps of a site

  const box = document.querySelector(".sm-score");
  const inBox = (what) => box.querySelector(what);
  const status = inBox(".sm-keeping-said");
  const input = inBox("input[type=file]");
  const dialog = inBox("dialog");
  const tell = (text) => (status.textContent = text);

  function save() {
    const link = document.createElement("a");
    const file = new Blob([progress.written()], { type: "application/json" });
    link.href = URL.createObjectURL(file);
    link.download = `shardmath-progress-${new Date().toISOString().slice(0, 10)}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    tell(`${link.download} has ${progress.inWords()}.`);
  }

  async function take() {
    const [file] = input.files;
    input.value = ""; // the same file may be chosen again
    if (!file) return;
    try {
      if (file.size > LARGEST) throw new Error("it is larger than any progress file");
      tell(progress.add(progress.read(await file.text())));
    } catch (error) {
      tell(`“${file.name}” was not added: ${error.message}. Nothing has changed.`);
    }
  }

  function erase() {
    const aside = answers.kept.asides().length + guesses.asides().length;
    const more = aside ? ", and what was set aside as damaged" : "";
    inBox("dialog strong").textContent = `Erase ${progress.inWords()}${more}?`;
    dialog.showModal();
  }

  const acts = { save, erase, open: () => input.click() };
  for (const button of box.querySelectorAll("details button"))
    button.addEventListener("click", acts[button.value]);
  input.addEventListener("change", take);
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "erase") return;
    dialog.returnValue = "";
    progress.erase();
    tell("All is erased.");
  });
}
