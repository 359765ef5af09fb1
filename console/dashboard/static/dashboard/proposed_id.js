// Ids proposed from a name: data-proposed-from is the name of the field that an id follows until it is edited.
const LETTERS = { ä: "ae", ö: "oe", ü: "ue", ß: "ss", æ: "ae", ø: "oe", å: "aa", œ: "oe", ł: "l" };

function proposedId(name) {
  const ascii = name.toLowerCase().replace(/[äöüßæøåœł]/g, (letter) => LETTERS[letter]).normalize("NFKD");
  const words = ascii.replace(/[\u0300-\u036f]/g, "").match(/[a-z0-9]+/g) ?? [];
  return words.join("-").slice(0, 40).replace(/-$/, "");
}

document.addEventListener("input", ({ target }) => {
  if (target.dataset.proposedFrom) {
    // An emptied id follows the name again.
    target.dataset.isEdited = target.value ? "yes" : "";
    return;
  }
  const id = target.form?.querySelector(`[data-proposed-from="${target.name}"]`);
  if (id && !id.dataset.isEdited) id.value = proposedId(target.value);
});
