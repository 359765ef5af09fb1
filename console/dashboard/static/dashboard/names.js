// The focus on the first field, and accessible names that unfold's pages lack: of scroll areas, of searchable selects,
// of the column of delete boxes.
// Registered before simplebar's listener, which reads the attribute at start.
document.addEventListener("DOMContentLoaded", () => {
  // Browsers forget the first field of a page whose styles are late.
  if (document.activeElement === document.body) document.querySelector("[autofocus]")?.focus();
  const main = document.querySelector("main[data-menu]");
  if (!main) return;
  for (const box of document.querySelectorAll("[data-simplebar]")) {
    box.dataset.simplebarAriaLabel = nameOfBox(box, main);
  }
  // Stacked rows on a phone show them; unfold would start each word with a capital letter.
  for (const cell of main.querySelectorAll("#result_list [data-label]")) {
    cell.dataset.label = cell.dataset.label.charAt(0).toUpperCase() + cell.dataset.label.slice(1);
  }
  for (const cell of main.querySelectorAll(".tabular thead th")) {
    if (!cell.textContent.trim()) cell.append(unseen(main.dataset.delete));
  }
  // Added rows are copies of an existing row, including its names.
  for (const field of main.querySelectorAll(".tabular tbody td :is(input:not([type=hidden]), select, textarea)")) {
    const header = headerOf(field);
    if (header && !field.labels?.length) field.setAttribute("aria-label", words(header));
  }
  nameChoices(main);
  // Select boxes are added after the page loads, and with each added row.
  if (main.querySelector("select.admin-autocomplete")) {
    new MutationObserver(() => nameChoices(main)).observe(main, { childList: true, subtree: true });
  }
});

function nameOfBox(box, main) {
  if (box.closest("#nav-sidebar")) return main.dataset.menu;
  if (box.closest("#changelist-filter")) return main.dataset.filters;
  const heading = box.closest("fieldset")?.querySelector("h2") ?? document.querySelector("h1");
  return words(heading);
}

// The label points to the <select>; name the element that select2 shows instead.
function nameChoices(main) {
  for (const shown of main.querySelectorAll(".select2-selection__rendered:not([aria-label])")) {
    const select = shown.closest(".select2-container").previousElementSibling;
    const label = select?.labels?.[0] ?? headerOf(select);
    if (label) shown.setAttribute("aria-label", words(label));
  }
}

function headerOf(field) {
  const cell = field?.closest("td");
  return cell?.closest("table").tHead?.rows[0].cells[cell.cellIndex];
}

function unseen(text) {
  const element = document.createElement("span");
  element.className = "pr-unseen";
  element.textContent = text;
  return element;
}

// The text without the asterisk of a required field and without icon names.
function words(element) {
  const copy = element.cloneNode(true);
  for (const icon of copy.querySelectorAll(".material-symbols-outlined")) icon.remove();
  return copy.textContent.replace("*", "").replace(/\s+/g, " ").trim();
}
