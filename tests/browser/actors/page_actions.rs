//! Page actions: log in, prompt, answer, invite, and read what is shown.

use serde_json::json;

use super::{Entry, Visitor};
use crate::api_actors::{HttpClient, PASSWORD};

impl Visitor {
    /// Fills in the login form, wherever it is shown.
    pub(crate) async fn fills_in_login(&self, name: &str) {
        self.fills_in("#login #username", name).await;
        self.fills_in("#login #password", PASSWORD).await;
        self.clicks("#login button[type=submit]").await;
    }

    /// Opens the gateway and logs in.
    pub(crate) async fn logs_in(&self, name: &str) {
        self.opens("/").await;
        self.fills_in_login(name).await;
        self.sees_workbench().await;
    }

    /// Deletes the refresh cookie.
    pub(crate) async fn loses_login(&self) {
        self.sends_devtools_command("Network.clearBrowserCookies", json!({}))
            .await;
    }

    /// Waits until the prompt field is shown.
    pub(crate) async fn sees_workbench(&self) {
        self.sees("textarea#prompt").await;
        self.sees_no("#login").await;
    }

    /// Types a prompt, and does not send it.
    pub(crate) async fn types_prompt(&self, words: &str) {
        self.clicks("textarea#prompt").await;
        self.pastes(words).await;
        let there = format!(
            "return document.querySelector('textarea#prompt').value === {}",
            json!(words)
        );
        self.waits_until("what was typed", &there).await;
    }

    /// The content of the prompt field.
    pub(crate) async fn reads_draft(&self) -> String {
        let value = "return document.querySelector('textarea#prompt')?.value ?? null";
        self.waits_for("the field for the prompt", async || {
            self.tries_script::<Option<String>>(value).await.ok()?
        })
        .await
    }

    /// Types a prompt and sends it.
    pub(crate) async fn prompts(&self, words: &str) {
        self.types_prompt(words).await;
        self.clicks("[data-part=send]").await;
    }

    /// Starts a session with a prompt, and returns its id.
    pub(crate) async fn starts_session(&self, words: &str) -> String {
        self.clicks("[data-part=new-session]").await;
        self.sees("[data-part=new]").await;
        self.prompts(words).await;
        self.sees_session().await
    }

    /// Waits until a session is shown, and returns its id.
    pub(crate) async fn sees_session(&self) -> String {
        let id = "return location.hash.match(/^#\\/s\\/(ses_\\w+)/)?.[1] ?? null";
        let id = self
            .waits_for("the address of a session", async || {
                self.tries_script::<Option<String>>(id).await.ok()?
            })
            .await;
        self.sees("[data-part=transcript]").await;
        id
    }

    /// Creates a session with an agent, and opens it.
    pub(crate) async fn opens_new(&self, api: &HttpClient, agent: &str) -> String {
        let made = api.posts("/api/sessions", json!({ "agent": agent })).await;
        let made = made.is(201).json()["id"].as_str().unwrap().to_owned();
        self.opens(&format!("/#/s/{made}")).await;
        let there = format!("return location.hash.includes('{made}')");
        self.waits_until("the session", &there).await;
        self.sees_connection("live").await;
        made
    }

    pub(crate) async fn opens_session(&self, id: &str) {
        self.clicks(&format!("[data-part=sessions] [data-session={id}] a"))
            .await;
        assert_eq!(self.sees_session().await, id);
    }

    /// The shown part of the conversation, top to bottom.
    pub(crate) async fn reads_transcript(&self) -> Vec<Entry> {
        self.runs_script(
            "return [...document.querySelectorAll('[data-part=transcript] [data-entry]')].map((one) => ({
                kind: one.dataset.entry,
                text: ((one.dataset.entry === 'answer' && one.querySelector('.markdown')) || one).textContent.trim(),
                is_complete: one.dataset.complete === 'true',
            }))",
        )
        .await
    }

    /// The agent's answers.
    pub(crate) async fn reads_answers(&self) -> Vec<String> {
        let entries = self.reads_transcript().await.into_iter();
        let answers = entries.filter(|entry| entry.kind == "answer");
        answers.map(|entry| entry.text).collect()
    }

    /// Waits for a complete answer that contains these words.
    pub(crate) async fn sees_answer(&self, words: &str) {
        self.sees_text("[data-entry=answer][data-complete=true] .markdown", words)
            .await;
    }

    /// Waits for an unfinished answer that contains these words.
    pub(crate) async fn sees_answer_begin(&self, words: &str) {
        self.sees_text("[data-entry=answer][data-complete=false] .markdown", words)
            .await;
    }

    /// Waits until no run is active and the next prompt can be sent.
    pub(crate) async fn sees_idle(&self) {
        self.sees_no("[data-part=cancel]").await;
        self.sees_no("[data-entry=answer][data-complete=false]")
            .await;
        self.sees("textarea#prompt").await;
    }

    /// Waits until the connection is in that state.
    pub(crate) async fn sees_connection(&self, state: &str) {
        self.waits_until(
            &format!("the connection {state}"),
            &format!("return document.querySelector('[data-part=connection]')?.dataset.state === '{state}'"),
        )
        .await;
    }

    /// Waits for a question, and answers it with one of its buttons.
    pub(crate) async fn answers(&self, answer: &str) {
        let button = format!("[data-part=question][data-state=open] [data-answer={answer}]");
        self.clicks(&button).await;
    }

    pub(crate) async fn allows(&self) {
        self.answers("allow_once").await;
    }

    pub(crate) async fn denies(&self) {
        self.answers("reject_once").await;
    }

    /// Expands an entry.
    pub(crate) async fn unfolds(&self, entry: &str) {
        let open = format!(
            "for (const one of document.querySelectorAll('{entry} details')) one.open = true; for (const one of document.querySelectorAll('{entry} [aria-expanded=false]')) one.click();"
        );
        self.runs_script::<()>(&open).await;
    }

    pub(crate) async fn cancels(&self) {
        self.clicks("[data-part=cancel]").await;
    }

    /// Creates an account on the users page, and returns its invite link.
    pub(crate) async fn invites(&self, name: &str) -> String {
        self.clicks("[data-part=add-user]").await;
        self.fills_in("#add-user #new-username", name).await;
        self.clicks("#add-user button[type=submit]").await;
        self.sees("[data-part=invite-link] input").await;
        self.runs_script("return document.querySelector('[data-part=invite-link] input').value")
            .await
    }

    /// Opens an invite, and chooses the usual password.
    pub(crate) async fn accepts(&self, link: &str) {
        self.opens(link).await;
        self.fills_in("#invite #password", PASSWORD).await;
        self.fills_in("#invite #repeat", PASSWORD).await;
        self.clicks("#invite button[type=submit]").await;
        self.sees_workbench().await;
    }

    /// The sessions in the list.
    pub(crate) async fn reads_sessions(&self) -> Vec<String> {
        self.runs_script("return [...document.querySelectorAll('[data-part=sessions] [data-session]')].map((one) => one.dataset.session)")
            .await
    }

    /// By how many pixels the page is wider than the screen, and the elements that are.
    pub(crate) async fn finds_overhang(&self) -> (i64, Vec<String>) {
        self.runs_script(
            "const page = document.scrollingElement;
             const wide = [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > page.clientWidth + 1);
             const name = (one) => one.tagName.toLowerCase() + [...one.classList].map((word) => '.' + word).join('');
             return [Math.max(page.scrollWidth - page.clientWidth, document.body.scrollWidth - document.body.clientWidth), wide.slice(0, 8).map(name)];",
        )
        .await
    }
}
