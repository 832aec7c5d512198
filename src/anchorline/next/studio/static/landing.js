// The browser omits the cookie (SameSite=Strict) when it follows a link from another site. Loading the page again
// from here sends it. A mark in the session storage prevents an endless loop in a browser without the cookie.
const MARK = "anchorline-reloaded";
const query = new URLSearchParams(location.search);
query.delete("token"); // a wrong token, which the server has refused
const here = location.pathname + (query.size ? `?${query}` : "") + location.hash;
const message = document.getElementById("message");
if (message.textContent) {
  history.replaceState(null, "", here);
} else if (sessionStorage.getItem(MARK) !== here) {
  sessionStorage.setItem(MARK, here);
  location.replace(here);
} else {
  sessionStorage.removeItem(MARK);
}

// Submits the token by script, so that the address with its state stays the same.
document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new URLSearchParams({ token: document.getElementById("token").value });
  const answer = await fetch("login", { method: "POST", body: form, credentials: "same-origin" });
  if (!answer.ok) {
    message.textContent = "This token is not valid. Use the link that the server printed last.";
    document.getElementById("token").select();
    return;
  }
  sessionStorage.setItem(MARK, here);
  location.replace(here);
});
