/* Starts Redoc on /v1/openapi.json, in the colour scheme of the reader's system. */
(() => {
  "use strict";

  // Redoc's footer loads a logo from a CDN; this page must not contact other servers.
  const image = HTMLImageElement.prototype;
  const setAttribute = image.setAttribute;
  const isForeign = (url) => /^(https?:)?\/\//.test(url) && new URL(url, location.href).origin !== location.origin;
  image.setAttribute = function (name, value) {
    if (name !== "src" || !isForeign(value)) setAttribute.call(this, name, value);
  };
  Object.defineProperty(image, "src", {
    get() { return this.getAttribute("src") ?? ""; },
    set(url) { this.setAttribute("src", url); },
  });

  const light = {
    text: { primary: "#1f2430", secondary: "#5a6172" },
    border: { dark: "#d6d9e0", light: "#eceef2" },
    primary: { main: "#0b6e63" },
  };
  const dark = {
    text: { primary: "#e4e7ee", secondary: "#a3abbb" },
    border: { dark: "#3a4150", light: "#2a303c" },
    primary: { main: "#2fa596" },
    success: { main: "#6fcf97" },
    error: { main: "#ff8f8f" },
    gray: { 50: "#1b202a", 100: "#232936" },
  };
  const themes = {
    light: {
      colors: light,
      sidebar: { backgroundColor: "#f6f7f9", textColor: "#1f2430" },
      rightPanel: { backgroundColor: "#20262f" },
      codeBlock: { backgroundColor: "#171c23" },
    },
    dark: {
      colors: dark,
      sidebar: { backgroundColor: "#12161c", textColor: "#e4e7ee" },
      rightPanel: { backgroundColor: "#12161c" },
      codeBlock: { backgroundColor: "#0c0f14" },
      schema: { nestedBackground: "#1b202a", linesColor: "#3a4150", typeNameColor: "#a3abbb", typeTitleColor: "#a3abbb" },
    },
  };
  const typography = {
    fontSize: "15px",
    lineHeight: "1.6",
    fontFamily: "system-ui, sans-serif",
    headings: { fontFamily: "system-ui, sans-serif", fontWeight: "600" },
    code: { fontFamily: "ui-monospace, monospace", fontSize: "13px", color: "inherit", wrap: true },
  };
  const spacing = { sectionVertical: 24 };

  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const theme = { ...(wantsDark.matches ? themes.dark : themes.light), typography, spacing };
  const options = { theme, hideDownloadButton: true, nativeScrollbars: true, expandResponses: "200,201,202" };
  wantsDark.addEventListener("change", () => location.reload());
  Redoc.init("/v1/openapi.json", options, document.getElementById("reference"));
})();
