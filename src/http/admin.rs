//! `/api/admin/…`: for administrators. Nothing here shows the content of a session: no prompt, no
//! title, no answer. Every change is recorded in the audit log.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

mod agents;
mod audit;
mod connections;
mod limits;
mod notices;
mod overview;
mod sessions;
mod users;

use super::AppState;

pub(super) fn slow_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(agents::test))
}

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(users::list, users::create))
        .routes(routes!(users::show, users::change, users::remove))
        .routes(routes!(users::invite))
        .routes(routes!(notices::send))
        .routes(routes!(connections::list))
        .routes(routes!(connections::disconnect))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::end))
        .routes(routes!(agents::list))
        .routes(routes!(audit::list))
        .routes(routes!(limits::show, limits::change))
        .routes(routes!(overview::show))
}
