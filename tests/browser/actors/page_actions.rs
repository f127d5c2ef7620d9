//! What people do in the page.

use serde_json::json;

use super::{Entry, Visitor};
use crate::staff::{Browser, PASSWORD};

impl Visitor {
    /// Fills in the form of the login, wherever it is shown.
    pub(crate) async fn fills_in_login(&self, name: &str) {
        self.writes("#login #username", name).await;
        self.writes("#login #password", PASSWORD).await;
        self.clicks("#login button[type=submit]").await;
    }

    /// Opens the gateway and logs in.
    pub(crate) async fn logs_in(&self, name: &str) {
        self.opens("/").await;
        self.fills_in_login(name).await;
        self.sees_workbench().await;
    }

    /// Loses the cookie that keeps the login.
    pub(crate) async fn loses_login(&self) {
        self.tells_browser("Network.clearBrowserCookies", json!({}))
            .await;
    }

    /// Waits until there is a place to type a prompt.
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
        self.awaits_that("what was typed", &there).await;
    }

    /// What stands in the field for the prompt.
    pub(crate) async fn reads_draft(&self) -> String {
        let value = "return document.querySelector('textarea#prompt')?.value ?? null";
        self.awaits("the field for the prompt", async || {
            self.glances::<Option<String>>(value).await.ok()?
        })
        .await
    }

    /// Types a prompt and sends it.
    pub(crate) async fn prompts(&self, words: &str) {
        self.types_prompt(words).await;
        self.clicks("[data-part=send]").await;
    }

    /// Begins a session with a prompt, and returns its id.
    pub(crate) async fn begins(&self, words: &str) -> String {
        self.clicks("[data-part=new-session]").await;
        self.sees("[data-part=new]").await;
        self.prompts(words).await;
        self.sees_session().await
    }

    /// Waits until a session is shown, and returns its id.
    pub(crate) async fn sees_session(&self) -> String {
        let id = "return location.hash.match(/^#\\/s\\/(ses_\\w+)/)?.[1] ?? null";
        let id = self
            .awaits("the address of a session", async || {
                self.glances::<Option<String>>(id).await.ok()?
            })
            .await;
        self.sees("[data-part=transcript]").await;
        id
    }

    /// Makes a session with an agent, and opens it.
    pub(crate) async fn opens_new(&self, api: &Browser, agent: &str) -> String {
        let made = api.posts("/api/sessions", json!({ "agent": agent })).await;
        let made = made.is(201).json()["id"].as_str().unwrap().to_owned();
        self.opens(&format!("/#/s/{made}")).await;
        let there = format!("return location.hash.includes('{made}')");
        self.awaits_that("the session", &there).await;
        self.sees_connection("live").await;
        made
    }

    pub(crate) async fn opens_session(&self, id: &str) {
        self.clicks(&format!("[data-part=sessions] [data-session={id}] a"))
            .await;
        assert_eq!(self.sees_session().await, id);
    }

    /// The conversation from top to bottom, as far as it is shown.
    pub(crate) async fn reads_transcript(&self) -> Vec<Entry> {
        self.looks(
            "return [...document.querySelectorAll('[data-part=transcript] [data-entry]')].map((one) => ({
                kind: one.dataset.entry,
                text: ((one.dataset.entry === 'answer' && one.querySelector('.markdown')) || one).textContent.trim(),
                is_complete: one.dataset.complete === 'true',
            }))",
        )
        .await
    }

    /// What the agent said, answer by answer.
    pub(crate) async fn reads_answers(&self) -> Vec<String> {
        let entries = self.reads_transcript().await.into_iter();
        let answers = entries.filter(|entry| entry.kind == "answer");
        answers.map(|entry| entry.text).collect()
    }

    /// Waits for an answer that is complete and contains these words.
    pub(crate) async fn sees_answer(&self, words: &str) {
        self.reads("[data-entry=answer][data-complete=true] .markdown", words)
            .await;
    }

    /// Waits for an answer that goes on, and has come so far as to contain these words.
    pub(crate) async fn sees_answer_begin(&self, words: &str) {
        self.reads("[data-entry=answer][data-complete=false] .markdown", words)
            .await;
    }

    /// Waits until nothing is under way in the session, and the next prompt can be sent.
    pub(crate) async fn sees_rest(&self) {
        self.sees_no("[data-part=cancel]").await;
        self.sees_no("[data-entry=answer][data-complete=false]")
            .await;
        self.sees("textarea#prompt").await;
    }

    /// Waits until the line to the gateway is in that state.
    pub(crate) async fn sees_connection(&self, state: &str) {
        self.awaits_that(
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

    /// Opens what is folded up in an entry.
    pub(crate) async fn unfolds(&self, entry: &str) {
        let open = format!(
            "for (const one of document.querySelectorAll('{entry} details')) one.open = true; for (const one of document.querySelectorAll('{entry} [aria-expanded=false]')) one.click();"
        );
        self.looks::<()>(&open).await;
    }

    pub(crate) async fn cancels(&self) {
        self.clicks("[data-part=cancel]").await;
    }

    /// Makes an account on the page for users, and returns the link for whoever it is for.
    pub(crate) async fn invites(&self, name: &str) -> String {
        self.clicks("[data-part=add-user]").await;
        self.writes("#add-user #new-username", name).await;
        self.clicks("#add-user button[type=submit]").await;
        self.sees("[data-part=invite-link] input").await;
        self.looks("return document.querySelector('[data-part=invite-link] input').value")
            .await
    }

    /// Opens an invitation, and chooses the usual password.
    pub(crate) async fn accepts(&self, link: &str) {
        self.opens(link).await;
        self.writes("#invite #password", PASSWORD).await;
        self.writes("#invite #repeat", PASSWORD).await;
        self.clicks("#invite button[type=submit]").await;
        self.sees_workbench().await;
    }

    /// The sessions in the list.
    pub(crate) async fn reads_sessions(&self) -> Vec<String> {
        self.looks("return [...document.querySelectorAll('[data-part=sessions] [data-session]')].map((one) => one.dataset.session)")
            .await
    }

    /// How far the page is wider than the screen, and what is.
    pub(crate) async fn finds_overhang(&self) -> (i64, Vec<String>) {
        self.looks(
            "const page = document.scrollingElement;
             const wide = [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > page.clientWidth + 1);
             const name = (one) => one.tagName.toLowerCase() + [...one.classList].map((word) => '.' + word).join('');
             return [Math.max(page.scrollWidth - page.clientWidth, document.body.scrollWidth - document.body.clientWidth), wide.slice(0, 8).map(name)];",
        )
        .await
    }
}
