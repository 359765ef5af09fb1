/* The documentation: tabs of code samples, copy buttons, the page as Markdown, search while typing, theme. Everything works without it. */
(() => {
  "use strict";

  const LANGUAGE = "docsLanguage";
  const SEARCH_DELAY_MS = 120;

  function element(name, properties, ...children) {
    const created = Object.assign(document.createElement(name), properties);
    created.append(...children);
    return created;
  }

  // Code samples: the tabs of all groups follow the chosen language.
  const groups = [...document.querySelectorAll(".samples")].map((group, number) => {
    const blocks = [...group.querySelectorAll(".code")];
    const tabs = blocks.map((block, index) => {
      block.id = `sample-${number}-${index}`;
      block.setAttribute("role", "tabpanel");
      block.setAttribute("aria-label", block.dataset.label);
      const tab = element("button", { type: "button", textContent: block.dataset.label });
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", block.id);
      tab.addEventListener("click", () => { select(tab.textContent); });
      return tab;
    });
    const list = element("div", { className: "tabs" }, ...tabs);
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Language");
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
      select(next.textContent);
      next.focus();
    });
    group.prepend(list);
    return { blocks, tabs };
  });

  function select(language) {
    localStorage.setItem(LANGUAGE, language);
    show(language);
  }

  function show(language) {
    for (const { blocks, tabs } of groups) {
      const chosen = Math.max(tabs.findIndex((tab) => tab.textContent === language), 0);
      tabs.forEach((tab, index) => {
        tab.setAttribute("aria-selected", String(index === chosen));
        tab.tabIndex = index === chosen ? 0 : -1;
        blocks[index].hidden = index !== chosen;
      });
    }
  }
  show(localStorage.getItem(LANGUAGE));

  // Copy buttons.
  for (const block of document.querySelectorAll(".code")) {
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    button.addEventListener("click", async () => {
      const code = block.querySelector("code");
      button.textContent = (await copied(code)) ? "Copied" : "Press Ctrl+C";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  }

  async function copied(code) {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      // Browsers deny clipboard access to pages without TLS: select the text instead.
      getSelection().selectAllChildren(code);
      return false;
    }
  }

  // The Markdown of the page.
  const copyPage = document.querySelector(".copy-page");
  if (copyPage) {
    const status = document.querySelector(".page-actions [role=status]");
    copyPage.hidden = false;
    copyPage.addEventListener("click", async () => {
      // The same text twice would not be announced.
      status.replaceChildren();
      status.replaceChildren(...await copiedPage(copyPage.dataset.source));
    });
    copyPage.addEventListener("blur", () => { if (!status.querySelector("a")) status.replaceChildren(); });
  }

  // Return what to tell the reader.
  async function copiedPage(url) {
    try {
      // The clipboard waits for the response: Safari denies access that is only requested after it.
      const text = fetch(url).then((response) => (response.ok ? response.blob() : Promise.reject(response)));
      const plain = text.then((blob) => new Blob([blob], { type: "text/plain" }));
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": plain })]);
      return ["Copied as Markdown."];
    } catch {
      return ["The browser did not allow it. ", element("a", { href: url, textContent: "Open the Markdown" })];
    }
  }

  // Search while typing: the results of the search page below the field.
  const form = document.querySelector(".search");
  const input = form.querySelector("input");
  const suggestions = form.querySelector(".suggestions");
  let timer;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(suggest, SEARCH_DELAY_MS);
  });

  async function suggest() {
    const query = input.value.trim();
    if (!query) return close();
    const response = await fetch(`/docs/search?q=${encodeURIComponent(query)}`);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    // An older response must not replace a newer one.
    if (query !== input.value.trim()) return;
    suggestions.replaceChildren(...page.querySelector("#results").children);
    suggestions.hidden = false;
  }

  function close() {
    suggestions.hidden = true;
    suggestions.replaceChildren();
  }

  form.addEventListener("keydown", (event) => {
    const targets = [input, ...suggestions.querySelectorAll("a")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { close(); input.focus(); }
    if (!step || suggestions.hidden) return;
    event.preventDefault();
    targets[(targets.indexOf(document.activeElement) + step + targets.length) % targets.length].focus();
  });
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) close(); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea")) return;
    event.preventDefault();
    input.focus();
  });

  // Theme: shared with the dashboard.
  const button = document.querySelector(".theme");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const mark = () => { button.setAttribute("aria-pressed", String(isDark())); };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("adminTheme", JSON.stringify(root.dataset.theme));
    mark();
  });
  mark();
})();
