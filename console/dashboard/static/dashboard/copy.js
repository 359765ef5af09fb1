// Copy buttons: data-copy="#id" copies the text of that element to the clipboard.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copy);
  const label = button.querySelector("[data-label]");
  // A second press must not store the temporary label and name as the original ones.
  label.dataset.original ??= label.textContent;
  button.dataset.name ??= button.ariaLabel ?? "";
  label.textContent = (await copied(source)) ? button.dataset.done : button.dataset.failed;
  // The name that a screen reader reads is the visible label for that time.
  button.removeAttribute("aria-label");
  setTimeout(() => {
    label.textContent = label.dataset.original;
    if (button.dataset.name) button.ariaLabel = button.dataset.name;
  }, 2000);
});

async function copied(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    // Browsers deny clipboard access to pages without TLS: select the text instead.
    getSelection().selectAllChildren(source);
    return false;
  }
}
