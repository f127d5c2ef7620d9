//! Users and tabs: several users, and several tabs of one.

use crate::actors::{Chromium, Visitor};
use crate::api_actors::Gateway;

#[tokio::test]
async fn two_users_see_only_their_own_sessions_and_messages() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    gateway.adds_user("leo", "member");
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (mia, leo) = tokio::join!(
        Visitor::opens_browser(&chromium, &base),
        Visitor::opens_browser(&chromium, &base)
    );
    mia.logs_in("mia").await;
    leo.logs_in("leo").await;

    let hers = mia.starts_session("/echo the word of mia").await;
    let his = leo.starts_session("/echo the word of leo").await;
    mia.sees_answer("the word of mia").await;
    leo.sees_answer("the word of leo").await;
    for (visitor, own, foreign, word) in [
        (&mia, &hers, &his, "the word of leo"),
        (&leo, &his, &hers, "the word of mia"),
    ] {
        // Reloaded, so that nothing is merely late.
        visitor.reloads().await;
        visitor
            .sees(&format!("[data-part=sessions] [data-session={own}]"))
            .await;
        assert_eq!(visitor.reads_sessions().await, std::slice::from_ref(own));
        let page = visitor.reads_page().await;
        assert!(!page.contains(word), "{page}");

        visitor.opens(&format!("/#/s/{foreign}")).await;
        visitor.reloads().await;
        visitor.sees("[data-part=ended]").await;
        let page = visitor.reads_page().await;
        assert!(!page.contains(word), "{page}");
    }
}

#[tokio::test]
async fn a_second_tab_shows_the_same() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::opens_browser(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.starts_session("/echo said in the first tab").await;
    mia.sees_answer("said in the first tab").await;

    let first = mia.tab().await;
    let second = mia.opens_tab().await;
    mia.opens(&format!("/#/s/{session}")).await;
    mia.sees_answer("said in the first tab").await;
    mia.prompts("/echo said in the second tab").await;
    mia.sees_answer("said in the second tab").await;
    let there = mia.reads_transcript().await;

    mia.switches_to_tab(&first).await;
    mia.sees_answer("said in the second tab").await;
    mia.sees_idle().await;
    assert_eq!(mia.reads_transcript().await, there);

    // A question shown in both tabs is answered in one.
    mia.prompts("/tool").await;
    mia.sees("[data-part=question][data-state=open]").await;
    mia.switches_to_tab(&second).await;
    mia.allows().await;
    mia.sees_answer("I ran").await;
    mia.switches_to_tab(&first).await;
    mia.sees_no("[data-part=question][data-state=open]").await;
    mia.sees_idle().await;
}
