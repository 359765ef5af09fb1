/* Applies the theme that the reader chose here or in the dashboard, before the page is drawn. */
(() => {
  "use strict";

  const theme = /^"(light|dark)"$/.exec(localStorage.getItem("adminTheme") ?? "");
  if (theme) document.documentElement.dataset.theme = theme[1];
})();
