const chosen = (() => { try { return localStorage.getItem("language"); } catch { return null; } })();
const speak = (language) => {
  document.documentElement.lang = language;
  for (const button of document.querySelectorAll("[data-language]"))
    button.setAttribute("aria-pressed", String(button.dataset.language === language));
};
speak(chosen || (navigator.language.startsWith("zh") ? "zh" : "en"));
addEventListener("DOMContentLoaded", () => {
  speak(document.documentElement.lang);
  for (const button of document.querySelectorAll("[data-language]"))
    button.addEventListener("click", () => {
      speak(button.dataset.language);
      try { localStorage.setItem("language", button.dataset.language); } catch { /* a page without storage still switches */ }
    });
});
