// Empty filters of the email list stay out of the URL.
document.addEventListener("htmx:configRequest", (event) => {
  if (!event.target.matches?.("[data-filters]")) return;
  const { parameters } = event.detail;
  for (const [name, value] of Object.entries(parameters)) {
    if (value === "") delete parameters[name];
  }
});

// The number of selected rows, beside the buttons that act on them.
document.addEventListener("change", () => {
  const shown = document.querySelector("[data-selected]");
  if (!shown) return;
  shown.querySelector("span").textContent = document.querySelectorAll("[name=selected]:checked").length;
  shown.hidden = false;
});

// The side panel: a click on a row shows its email, "j" and "k" the next and the previous one, Escape closes it.
(() => {
  const wide = matchMedia("(min-width: 1024px)");
  const rows = () => [...document.querySelectorAll("tr[data-panel]")];
  // The rows may have been replaced since.
  let shown = "";
  const current = () => rows().find((row) => row.dataset.panel === shown);

  async function open(row) {
    const panel = document.querySelector("#panel");
    const body = panel.querySelector("div");
    shown = row.dataset.panel;
    mark();
    const response = await fetch(row.dataset.panel).catch(() => null);
    // Another row was chosen in the meantime.
    if (shown !== row.dataset.panel) return;
    if (response?.ok && !response.redirected) body.innerHTML = await response.text();
    else body.textContent = panel.dataset.failed;
    panel.hidden = false;
    panel.scrollTop = 0;
  }

  function close() {
    document.querySelector("#panel").hidden = true;
    shown = "";
    mark();
  }

  function mark() {
    for (const row of rows()) row.toggleAttribute("data-shown", row.dataset.panel === shown);
  }

  function move(step) {
    const all = rows();
    const focused = document.activeElement.closest?.("tr[data-panel]");
    const place = all.indexOf(current() ?? focused);
    const row = all[place < 0 ? 0 : place + step];
    if (!row) return;
    row.querySelector(".pr-main a").focus();
    if (wide.matches) open(row);
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) close();
    const row = event.target.closest("tr[data-panel]");
    if (!row || !wide.matches || event.target.closest("a, input, button, label, .pr-select")) return;
    if (!getSelection().isCollapsed) return;
    if (event.ctrlKey || event.metaKey) window.open(row.querySelector(".pr-main a").href);
    else open(row);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && shown) {
      const row = current();
      close();
      row?.querySelector(".pr-main a").focus();
    }
    if (localStorage.getItem("shortcuts") === "off") return;
    if (event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable=true]")) return;
    if (event.key === "j") move(1);
    if (event.key === "k") move(-1);
  });
  document.addEventListener("htmx:afterSettle", mark);
})();
