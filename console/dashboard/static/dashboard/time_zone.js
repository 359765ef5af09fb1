// Suggests the time zone of the browser to an account that has not chosen one (parts/time_zone.html).
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const notice = document.querySelector("[data-time-zone]");
  if (!zone || ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Etc/Unknown"].includes(zone)) return;
  notice.querySelector("[data-name]").textContent = zone;
  notice.querySelector("[data-choice]").value = zone;
  notice.hidden = false;
})();
