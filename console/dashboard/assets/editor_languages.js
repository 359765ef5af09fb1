// The languages of the template editor: a panel each, of which one is shown.
const PARTS = ["subject", "html", "text"];
const NEW = "__locale__";

export const fieldName = (part, locale) => (locale ? `${part}-${locale}` : part);

// Return the tag in its usual case, such as `de-AT`; null for a text that is none.
function normalized(tag) {
  try {
    return Intl.getCanonicalLocales(tag.trim().replaceAll("_", "-"))[0] ?? null;
  } catch {
    return null;
  }
}

// open: called with a panel that is shown, for its editors. close: with one that is removed. changed: with the language.
export function startLanguages(form, { open, close, changed }) {
  const bar = form.querySelector("[data-languages]");
  const buttons = bar.querySelector("[data-shown]");
  const dialog = form.querySelector("#language");
  const refusal = dialog.querySelector("[data-refusal]");
  const shown = form.elements.namedItem("shown");
  const panels = () => [...form.querySelectorAll("[data-locale]")];
  const panelOf = (locale) => panels().find((panel) => panel.dataset.locale === locale);

  function show(locale) {
    const chosen = panelOf(locale) ? locale : "";
    for (const panel of panels()) panel.hidden = panel.dataset.locale !== chosen;
    for (const button of buttons.children) button.setAttribute("aria-pressed", String(button.dataset.show === chosen));
    buttons.hidden = panels().length === 1;
    shown.value = chosen;
    open(panelOf(chosen));
    changed(chosen);
  }

  function add(locale) {
    const model = form.querySelector("[data-new-language]").innerHTML.replaceAll(NEW, locale);
    panels().at(-1).insertAdjacentHTML("afterend", model);
    const panel = panelOf(locale);
    panel.querySelector("[data-remove-language]").hidden = false;
    for (const part of PARTS) {
      const field = form.elements.namedItem(fieldName(part, locale));
      if (field) field.value = form.elements.namedItem(fieldName(part, shown.value)).value;
    }
    const name = [...form.querySelectorAll("#languages option")].find((option) => option.value === locale)?.textContent;
    const label = name ? `${name} (${locale})` : locale;
    panel.setAttribute("aria-label", label);
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: label });
    button.dataset.show = locale;
    buttons.append(button);
    show(locale);
    form.elements.namedItem(fieldName("subject", locale))?.focus();
    form.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function addAsked() {
    const field = dialog.querySelector("[data-new-tag]");
    const locale = normalized(field.value);
    const isPresent = locale !== null && (panelOf(locale) || form.elements.namedItem("locale").value === locale);
    refusal.textContent = locale === null ? refusal.dataset.invalid : isPresent ? refusal.dataset.present : "";
    refusal.dataset.tone = "danger";
    if (refusal.textContent) return;
    field.value = "";
    dialog.close();
    add(locale);
  }

  function remove(locale) {
    const panel = panelOf(locale);
    close(panel);
    panel.remove();
    buttons.querySelector(`[data-show="${locale}"]`).remove();
    show("");
    form.dispatchEvent(new Event("input", { bubbles: true }));
  }

  form.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button && "show" in button.dataset) {
      show(button.dataset.show);
      form.dispatchEvent(new Event("input", { bubbles: true }));
    }
    if (button && "addLanguage" in button.dataset) addAsked();
    if (button?.dataset.removeLanguage) remove(button.dataset.removeLanguage);
  });
  for (const button of form.querySelectorAll("[data-languages] [data-dialog], [data-remove-language]")) button.hidden = false;
  show(shown.value);
  return {
    show,
    // Mark the language with an error, which may be another one than the one that is shown.
    mark(field) {
      const locale = field?.match(/^(?:subject|html|text)(?:-(.+))?$/);
      for (const button of buttons.children) {
        button.toggleAttribute("data-wrong", Boolean(locale) && (locale[1] ?? "") === button.dataset.show);
      }
    },
  };
}
