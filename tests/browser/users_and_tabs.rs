//! Several people, and several tabs.

use crate::actors::{Chromium, Visitor};
use crate::staff::Gateway;

#[tokio::test]
async fn two_people_see_only_their_own_sessions_and_words() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    gateway.has_user("leo", "member");
    let base = format!("http://{}", gateway.address());
    let chromium = Chromium::start();
    let (mia, leo) = tokio::join!(
        Visitor::comes(&chromium, &base),
        Visitor::comes(&chromium, &base)
    );
    mia.logs_in("mia").await;
    leo.logs_in("leo").await;

    let hers = mia.begins("/echo the word of mia").await;
    let his = leo.begins("/echo the word of leo").await;
    mia.sees_answer("the word of mia").await;
    leo.sees_answer("the word of leo").await;
    for (visitor, own, foreign, word) in [
        (&mia, &hers, &his, "the word of leo"),
        (&leo, &his, &hers, "the word of mia"),
    ] {
        // Loaded anew, so that nothing is only not there yet.
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
async fn a_second_tab_stays_in_step() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    let chromium = Chromium::start();
    let mia = Visitor::comes(&chromium, &format!("http://{}", gateway.address())).await;
    mia.logs_in("mia").await;
    let session = mia.begins("/echo said in the first tab").await;
    mia.sees_answer("said in the first tab").await;

    let first = mia.tab().await;
    let second = mia.opens_tab().await;
    mia.opens(&format!("/#/s/{session}")).await;
    mia.sees_answer("said in the first tab").await;
    mia.prompts("/echo said in the second tab").await;
    mia.sees_answer("said in the second tab").await;
    let there = mia.reads_transcript().await;

    mia.turns_to(&first).await;
    mia.sees_answer("said in the second tab").await;
    mia.sees_rest().await;
    assert_eq!(mia.reads_transcript().await, there);

    // A question that is asked in both is answered in one.
    mia.prompts("/tool").await;
    mia.sees("[data-part=question][data-state=open]").await;
    mia.turns_to(&second).await;
    mia.allows().await;
    mia.sees_answer("I ran").await;
    mia.turns_to(&first).await;
    mia.sees_no("[data-part=question][data-state=open]").await;
    mia.sees_rest().await;
}
