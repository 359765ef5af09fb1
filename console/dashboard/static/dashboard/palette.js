// The command palette: Ctrl-K, or the link in the header, opens it; arrows choose an entry, Enter follows it.
document.addEventListener("DOMContentLoaded", () => {
  const dialog = document.querySelector("#palette");
  if (!dialog) return;
  const field = dialog.querySelector("input");
  const list = dialog.querySelector("[role=listbox]");
  let asked = null;
  let timer = 0;

  function show() {
    if (dialog.open) return;
    field.value = "";
    dialog.showModal();
    load();
  }

  async function load() {
    const query = field.value;
    asked = query;
    const response = await fetch(`${dialog.dataset.url}?${new URLSearchParams({ q: query })}`).catch(() => null);
    // A later request answers what is written now.
    if (asked !== query || !response?.ok || response.redirected) return;
    list.innerHTML = await response.text();
    options().forEach((option, index) => { option.id = `palette-${index}`; });
    select(0);
  }

  function options() {
    return [...list.querySelectorAll("[role=option]")];
  }

  function select(place) {
    const all = options();
    const chosen = all[(place + all.length) % all.length];
    for (const option of all) option.setAttribute("aria-selected", option === chosen);
    if (!chosen) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  function chosen() {
    return options().findIndex((option) => option.getAttribute("aria-selected") === "true");
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, 150);
  });
  field.addEventListener("keydown", async (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown") select(chosen() + 1);
    else if (event.key === "ArrowUp") select(chosen() - 1);
    else if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer);
      if (asked !== field.value) await load();
      options()[chosen()]?.click();
      return;
    } else return;
    event.preventDefault();
  });
  // A click beside the dialog.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette]") || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (document.querySelector("dialog[open]:not(#palette)")) return;
    event.preventDefault();
    show();
  });
});
