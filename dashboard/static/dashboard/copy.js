// Buttons with data-copy="#id" put the text of that element on the clipboard.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copy);
  const label = button.querySelector("[data-label]");
  // Pressed twice, it must not come to rest on what it said for a moment.
  label.dataset.rest ??= label.textContent;
  label.textContent = (await copied(source)) ? button.dataset.done : button.dataset.failed;
  setTimeout(() => { label.textContent = label.dataset.rest; }, 2000);
});

async function copied(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    // Browsers keep the clipboard from pages served without TLS: leave the text selected.
    getSelection().selectAllChildren(source);
    return false;
  }
}
