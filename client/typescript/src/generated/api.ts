// Made by `make clients` from the API with the digest 52f89415d75e06b003908d871c30bd08717e4df11eac5668e134bcb28c1420f5.

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The web page */
        get: operations["get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/{file}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A file of the web page */
        get: operations["getFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent_id}/questions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An agent's own questions, newest first */
        get: operations["getAgentsAgentIdQuestions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/amnesties": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All amnesties (admins) */
        get: operations["getAmnesties"];
        put?: never;
        /**
         * Declare that an outage counts against nobody (admins)
         * @description The dates that it touched are no misses. Apply it to all who have lost something.
         */
        post: operations["postAmnesties"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/amnesties/{number}/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Apply an amnesty, or its revocation, to some users (admins) */
        post: operations["postAmnestiesNumberApply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/amnesties/{number}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Revoke an amnesty (admins) */
        post: operations["postAmnestiesNumberRevoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/boards": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The boards of the book, with their periods: those that go on, and final results */
        get: operations["getBoards"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/boards/{board_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A board of a period: the best, and for a user the own rank and the rows around */
        get: operations["getBoardsBoardName"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/boards/{board_name}/users/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A user's rank on a board of a period, with the rows around */
        get: operations["getBoardsBoardNameUsersUserId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document as a page */
        get: operations["getDocs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erasures/{erasure_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How far an erasure is, and at its end the certificate
         * @description The id is a secret of whoever asked for the erasure; what it leads to names nobody.
         */
        get: operations["getErasuresErasureId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send 1 to 100 events
         * @description With the header Prefer: wait=2 the answer is 200 as soon as the events are applied. It has each event's points and date, the profile after them, and achievements and level that are new. If they are not applied in time (five seconds at most), are of several users, or arrived over ten minutes ago, it is 202, as without the header.
         */
        post: operations["postEvents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Health */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hooks/{organization}/{source}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Answer a vendor that asks whether this address is ours */
        get: operations["getHooksOrganizationSource"];
        put?: never;
        /**
         * Take a vendor's webhook, or a browser's form
         * @description It needs no token, but the source's signature; 401 for whatever does not fit. 200 means that it is kept. A delivery that comes again changes nothing. `streakline hook add` makes a hook.
         */
        post: operations["postHooksOrganizationSource"];
        delete?: never;
        /** Let a page of an allowed origin send a form as JSON */
        options: operations["optionsHooksOrganizationSource"];
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leaderboards/{board}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The best */
        get: operations["getLeaderboardsBoard"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leaderboards/{board}/users/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A user's exact rank */
        get: operations["getLeaderboardsBoardUsersUserId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The lead that an integration's event was stored for */
        get: operations["getLeads"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/{lead_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Erase a lead, with all leads that are the same person
         * @description Addresses, numbers and ids of the person make no lead again, either. Everything online is gone within the hour, lake and warehouse in two nights some days apart; GET /v1/erasures/{erasure_id} shows what is awaited until when, and then the certificate. The id answers 410 until an admin lifts that. Asking again answers the same.
         */
        delete: operations["deleteLeadsLeadId"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/{lead_id}/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The merges, undoings and refusals that touched a lead
         * @description Newest first, each with its evidence: the event that proved it, or who did it and why. After a pause the database wakes up first: a 5xx within the first minute means that you try again.
         */
        get: operations["getLeadsLeadIdChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/{lead_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A lead's events, newest first
         * @description With `type`, those of one type: an event appears there a moment after it was stored.
         */
        get: operations["getLeadsLeadIdEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/{lead_id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How far the export of a lead is, and where it can be had
         * @description Of the newest export that was asked for. Once it is finished, `url` has it, for an hour; each request makes a new one, until `expires_at`, a day later.
         */
        get: operations["getLeadsLeadIdExport"];
        put?: never;
        /**
         * Ask for everything that is known of a lead, as a ZIP of JSON and CSV
         * @description It is made meanwhile: GET tells when it is finished, and its URL. Asking again while it is being made answers the same export, and goes on with one that got stuck. But for admins, a caller may ask some times a day: 429.
         */
        post: operations["postLeadsLeadIdExport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/{lead_id}/features": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A lead's features */
        get: operations["getLeadsLeadIdFeatures"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/{lead_id}/memory": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is remembered of a lead */
        get: operations["getLeadsLeadIdMemory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/changes/{change}/reversal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo a merge of leads
         * @description 202 means that the command is kept. The merge is undone a moment later; after a pause, this may take half a minute.
         */
        post: operations["postLeadsChangesChangeReversal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send an integration's webhook
         * @description 202 means that the webhook is kept and will not be lost. Its lead and its events become visible a moment later; after a pause in which nobody sent anything, this may take half a minute, because the database of identities has to wake up.
         */
        post: operations["postLeadsEvents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/lift": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let an erased person's addresses, numbers and ids make a lead anew (admins)
         * @description One of them is named; all that were erased with it are lifted. What happened before is refused for good.
         */
        post: operations["postLeadsLift"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/lookup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The lead of an e-mail address, a telephone number or an id of WhatsApp's
         * @description The value may be written in any way that a webhook may write it. It is 404 for a value that nobody has, or that many people gave. After a pause the database wakes up first: a 5xx within the first minute means that you try again.
         */
        post: operations["postLeadsLookup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leads/merges": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Merge two leads by hand
         * @description `change` is the number to undo it by, null if the leads were one already. Memory and features follow a moment later. An operator may have parted two leads. They are merged only if `unite` is true. Then all leads that only this parting kept apart may be one again. After a pause the database wakes up first: a 5xx within the first minute means that you try again.
         */
        post: operations["postLeadsMerges"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: operations["getOpenapiJson"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The pipeline, live (admins) */
        get: operations["getOperations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/questions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Questions for the caller, newest first */
        get: operations["getQuestions"];
        put?: never;
        /** Ask a question (agents) */
        post: operations["postQuestions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/questions/{question_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A question */
        get: operations["getQuestionsQuestionId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/questions/{question_id}/responses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Answers, in order (the agent who asked) */
        get: operations["getQuestionsQuestionIdResponses"];
        put?: never;
        /** Answer a question, once */
        post: operations["postQuestionsQuestionIdResponses"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/review": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Accounts under review, by user id (admins) */
        get: operations["getReview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/review/{user_id}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End a review (admins) */
        post: operations["postReviewUserIdRelease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rewards": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Rewards that are offered now, by id */
        get: operations["getRewards"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The book of rules in force
         * @description Its schema is components.schemas.Book. Secret achievements are for admins to see.
         */
        get: operations["getRules"];
        put?: never;
        /**
         * Publish a version of the book (admins)
         * @description Every function knows it within a minute. An event is judged by the version in force when it occurred, as far as it is known when the event arrives. With dry_run the answer is 200, and nothing is published.
         */
        post: operations["postRules"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rules/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All versions, the newest first (admins) */
        get: operations["getRulesVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rules/what-ifs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask what another book would have led to (admins)
         * @description The history in the lake is judged by it, user by user, and nothing is published. That takes seconds to minutes: GET has the report at its end. The same question is the same what-if, and is worked out anew once it is over. Another question has to wait until then: 409.
         */
        post: operations["postRulesWhat-Ifs"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rules/what-ifs/{what_if_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far a what-if is, and at its end the report, for a week (admins) */
        get: operations["getRulesWhat-IfsWhatIfId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The best by points */
        get: operations["getStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/stats/{fingerprint}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A person's stats */
        get: operations["getStatsFingerprint"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Be told of questions on a phone */
        post: operations["postSubscriptions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/subscriptions/{subscription_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Be told nothing more there */
        delete: operations["deleteSubscriptionsSubscriptionId"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Profiles of up to 100 users, for servers and admins
         * @description Each is as GET /v1/users/{user_id} shows it.
         */
        get: operations["getUsers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Profile */
        get: operations["getUsersUserId"];
        put?: never;
        post?: never;
        /**
         * Erase a user (the user, or an admin)
         * @description All that is known of the user is deleted; it cannot be undone. Everything online is gone within the hour, lake and warehouse in two nights some days apart; GET /v1/erasures/{erasure_id} shows what is awaited until when, and then the certificate. The id answers 410 until an admin lifts that. Asking again answers the same.
         */
        delete: operations["deleteUsersUserId"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/achievements": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Achievements that the book declares: which, since when, and how far the others are
         * @description Who has over 10,000 ledger entries in about three weeks is refused: 422. So is who asks for the first time with over 50,000 in all.
         */
        get: operations["getUsersUserIdAchievements"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/activity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Active dates, newest first
         * @description With covered=true, from and to: also `covered`, the dates without activity, up to today, that a freeze, a pause, a rest day, a short date or the zone covers, each with its reason.
         */
        get: operations["getUsersUserIdActivity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/alias": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Choose a name for the boards */
        put: operations["putUsersUserIdAlias"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/answers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A user's own answers, newest first; by default those of 30 days */
        get: operations["getUsersUserIdAnswers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/balance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Points, read strongly from the ledger
         * @description With as_of: what the ledger said at that instant (known_balance), and what was so by then, late events and expiry included (true_balance). An instant before over 10,000 entries: 422.
         */
        get: operations["getUsersUserIdBalance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/blocked/{friend_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Block another user
         * @description A pair ends, and requests of the other user are not shown any more. The other user does not learn of it.
         */
        put: operations["putUsersUserIdBlockedFriendId"];
        post?: never;
        /** Let another user ask again */
        delete: operations["deleteUsersUserIdBlockedFriendId"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/boards": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether a user has left the boards, and in which groups the user is */
        get: operations["getUsersUserIdBoards"];
        /**
         * Leave all boards, or come back
         * @description Who has left is on no list and in no count, from the next snapshot on: five minutes, of many users up to the pause between two snapshots. Own ranks answer 409.
         */
        put: operations["putUsersUserIdBoards"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/clawbacks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reverse an event and what it earned (streakline/fulfilment)
         * @description Once an event; the answer is its CLAWBACK entry. What was spent stays spent. So the balance may become a debt, which what is earned next pays.
         */
        post: operations["postUsersUserIdClawbacks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Events, newest first
         * @description Those of the lake may be read ten times a minute.
         */
        get: operations["getUsersUserIdEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How far the export of a user is, and where it can be had
         * @description Of the newest export that was asked for. Once it is finished, `url` has it, for an hour; each request makes a new one, until `expires_at`, a day later.
         */
        get: operations["getUsersUserIdExport"];
        put?: never;
        /**
         * Ask for everything that is known of a user, as a ZIP of JSON and CSV
         * @description It is made meanwhile: GET tells when it is finished, and its URL. Asking again while it is being made answers the same export, and goes on with one that got stuck. But for admins, a caller may ask some times a day: 429.
         */
        post: operations["postUsersUserIdExport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/freezes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get a freeze
         * @description Some a month are free, further ones cost points. What an admin gives is free.
         */
        post: operations["postUsersUserIdFreezes"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/friends": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Friends, the streak that the user has with each, and requests
         * @description Of friends there are dates, and no times, events or points.
         */
        get: operations["getUsersUserIdFriends"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/friends/{friend_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Ask another user to be a friend, or answer such a request
         * @description The pair begins when both have done so. A server begins it at once: it says that both have agreed.
         */
        put: operations["putUsersUserIdFriendsFriendId"];
        post?: never;
        /** End a pair, decline a request, or take one back */
        delete: operations["deleteUsersUserIdFriendsFriendId"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/friends/board": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The user among the friends
         * @description By streaks, by points ever earned, or by the points of a board of the book, in its period of today.
         */
        get: operations["getUsersUserIdFriendsBoard"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Say in which groups a user is: all of them (servers)
         * @description Boards that are divided by an attribute rank each of its groups. A change counts for all periods that are not final.
         */
        put: operations["putUsersUserIdGroups"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/holds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reserve points (streakline/fulfilment) */
        post: operations["postUsersUserIdHolds"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/holds/{hold_id}/capture": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Spend held points, all or some (streakline/fulfilment) */
        post: operations["postUsersUserIdHoldsHoldIdCapture"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/holds/{hold_id}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give held points back (streakline/fulfilment) */
        post: operations["postUsersUserIdHoldsHoldIdRelease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/league": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The user's division, the open league, and the last outcome
         * @description Leagues are shown only: nothing is earned in them. 404: there are no leagues this week.
         */
        get: operations["getUsersUserIdLeague"];
        /** Leave the leagues, or come back */
        put: operations["putUsersUserIdLeague"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/ledger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Ledger entries, newest first */
        get: operations["getUsersUserIdLedger"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/lift": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let an erased id be used anew (admins)
         * @description What happened before is refused for good.
         */
        post: operations["postUsersUserIdLift"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/pauses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pause the streak */
        post: operations["postUsersUserIdPauses"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/redemptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Redeemed rewards, newest first */
        get: operations["getUsersUserIdRedemptions"];
        put?: never;
        /**
         * Redeem a reward
         * @description At the book's price. Who is in streakline/fulfilment may name points instead.
         */
        post: operations["postUsersUserIdRedemptions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/redemptions/{entry_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A redeemed reward, and what has become of it */
        get: operations["getUsersUserIdRedemptionsEntryId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/redemptions/{entry_id}/failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The user will not get the reward: its points go back, once
         * @description streakline/fulfilment, or streakline/fulfilment/ with the brand
         */
        post: operations["postUsersUserIdRedemptionsEntryIdFailed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/redemptions/{entry_id}/fulfilled": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The user has the reward
         * @description streakline/fulfilment, or streakline/fulfilment/ with the brand
         */
        post: operations["postUsersUserIdRedemptionsEntryIdFulfilled"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/redemptions/{entry_id}/reversal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Undo a redemption (streakline/fulfilment) */
        post: operations["postUsersUserIdRedemptionsEntryIdReversal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/rest-days": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Choose rest days
         * @description They are weekdays on which a date without activity is no miss, as many as the book's daily.rest_days_chosen. A choice counts from the first date on that has begun nowhere on earth, and stays for 28 days at least.
         */
        put: operations["putUsersUserIdRest-Days"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/rewards": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The same, with what the user can have */
        get: operations["getUsersUserIdRewards"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/streak/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why a day counts or not */
        get: operations["getUsersUserIdStreakExplain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/streak/repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Repair the run that has just broken
         * @description The missed dates that no freeze covers get one each, at the book's price. The profile's `repair` says whether that is possible. A second call gives the first answer. A date that turns out to need no repair is given back.
         */
        post: operations["postUsersUserIdStreakRepair"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/streaks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All streaks: the daily one, and those that the book declares */
        get: operations["getUsersUserIdStreaks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/streaks/{name}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why a date's period counts for a streak or not */
        get: operations["getUsersUserIdStreaksNameExplain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/users/{user_id}/timezone": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Set the zone */
        put: operations["putUsersUserIdTimezone"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All endpoints (admins) */
        get: operations["getWebhook-Endpoints"];
        put?: never;
        /**
         * Register an endpoint for outgoing webhooks (admins)
         * @description Messages are signed as Standard Webhooks say. Every function knows it within a minute.
         */
        post: operations["postWebhook-Endpoints"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{endpoint_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End an endpoint (admins) */
        delete: operations["deleteWebhook-EndpointsEndpointId"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{endpoint_id}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send to an endpoint again that had answered 410 Gone (admins) */
        post: operations["postWebhook-EndpointsEndpointIdEnable"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{endpoint_id}/secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Rotate an endpoint's secret: for a while both sign (admins) */
        post: operations["postWebhook-EndpointsEndpointIdSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{endpoint_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send an endpoint a test message (admins) */
        post: operations["postWebhook-EndpointsEndpointIdTest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * A book of rules
         * @description what earns what
         */
        Book: {
            /** @description achievements, by name */
            achievements?: {
                [key: string]: {
                    all?: {
                        at_least?: number;
                        /** @description events of this type */
                        count?: string;
                        /** @description points ever earned */
                        points_earned?: number;
                        /** @description a streak of this book */
                        streak?: string;
                        /** @description the sum of a property over the events of a type */
                        sum?: {
                            event_type: string;
                            property: string;
                        };
                    }[];
                    any?: {
                        at_least?: number;
                        /** @description events of this type */
                        count?: string;
                        /** @description points ever earned */
                        points_earned?: number;
                        /** @description a streak of this book */
                        streak?: string;
                        /** @description the sum of a property over the events of a type */
                        sum?: {
                            event_type: string;
                            property: string;
                        };
                    }[];
                    description?: string;
                    /** @description whether its date may be before its declaration; default: false */
                    history?: boolean;
                    /** @description a picture: https://, or data:image/ for a small one */
                    image_url?: string;
                    /** @description a bonus, once a user; needs withdrawn: when_untrue. Left out: none */
                    points?: number;
                    /** @description whether only those who have it may know of it; default: false */
                    secret?: boolean;
                    title?: string;
                    /**
                     * @description whether a shown one is withdrawn when it is no longer true; default: never
                     * @enum {unknown}
                     */
                    withdrawn?: "never" | "when_untrue";
                };
            };
            /** @description what answers to questions earn in their own stats; left out: nothing */
            answers?: {
                /** @description more, if the answer says how sure the person is; left out: none */
                confidence_points?: number;
                /** @description the most that a person's answers of a date earn, by the version in force when the date begins */
                day_points_max: number;
                /** @description of each answer */
                points: number;
                /** @description for answers given neither hastily nor late; left out: no such points */
                timing?: {
                    /** @description from so many milliseconds on */
                    from_ms: number;
                    /** @description more, if the answer took this long */
                    points: number;
                    /** @description to so many milliseconds, inclusive */
                    to_ms: number;
                };
            };
            /** @description boards by period, by name */
            boards?: {
                [key: string]: {
                    description?: string;
                    /** @description or the first date of its only period, such as 2027-06-01 */
                    from?: string;
                    /** @description the attribute of users that divides it, such as class; left out: undivided */
                    group?: string;
                    /**
                     * @description it begins anew with each; a week begins on Monday
                     * @enum {unknown}
                     */
                    per?: "week" | "month";
                    /** @description and the last one, included; up to 366 dates */
                    until?: string;
                };
            };
            boosts?: {
                /** @description the types whose points are multiplied; left out: all */
                event_types?: string[];
                /** @description what points are multiplied by */
                factor: number;
                /** @description an instant with its zone (RFC 3339), such as 2027-01-01T00:00:00Z */
                since: string;
                /** @description the first instant at which it no longer applies */
                until: string;
            }[];
            /** @description rest days of the daily streak, one of rest_days and rest_days_chosen, and when dates begin. Left out: no rest days, and midnight */
            daily?: {
                /** @description when dates begin by the clock on the wall, "00:00" to "06:00"; left out: "00:00" */
                day_starts_at?: string;
                /** @description the weekdays on which a date without activity is no miss, for all users */
                rest_days?: ("monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")[];
                /** @description or how many weekdays each user may choose */
                rest_days_chosen?: number;
            };
            /** @description by name */
            event_types: {
                [key: string]: {
                    /** @description the most that one user earns with this type; exactly one of points and events */
                    cap?: {
                        /** @description or the most events that earn; a boost lifts what they earn */
                        events?: number;
                        /**
                         * @description an activity date, or a week from Monday
                         * @enum {unknown}
                         */
                        per: "day" | "week";
                        /** @description the most points */
                        points?: number;
                    };
                    /**
                     * @description server: only admins, producers and the Kinesis stream may send it
                     * @enum {unknown}
                     */
                    declared_by?: "anybody" | "server";
                    description?: string;
                    /** @description whether an event makes its date active; default: true */
                    keeps_streak?: boolean;
                    /** @description points of one event, before the cap: a number, or an object with base, of, each and earns */
                    points: number | {
                        /** @description points of each event, whatever its amount; left out: 0 */
                        base?: number;
                        /** @description so much of it earns; has up to three decimals */
                        each: number;
                        /** @description points of each whole `each` */
                        earns: number;
                        /** @description a number that the data contract bounds */
                        of: string;
                    };
                    /** @description the data contract: a JSON Schema that an event's properties must satisfy */
                    properties?: Record<string, unknown>;
                };
            };
            /** @description when points expire; exactly one of after_days and end_of. Left out: never */
            expiry?: {
                /** @description so many days after the event's date */
                after_days?: number;
                /**
                 * @description or at the end of this period, counted from that date
                 * @enum {unknown}
                 */
                end_of?: "month" | "next_month" | "quarter" | "next_quarter" | "year" | "next_year";
            };
            /**
             * @description of this document
             * @constant
             */
            format?: 1;
            /** @description streak freezes; left out: users can have none */
            freezes?: {
                /** @description how many are free in a month (UTC) */
                free_a_month: number;
                /** @description how many unused ones a user may have */
                held_max: number;
                /** @description the price of each further one */
                price_points: number;
            };
            /** @description friends and their common streaks; left out: there are none */
            friends?: {
                /** @description how many friends a user may have */
                max: number;
            };
            /** @description weekly leagues: cohorts, of which some members go up and some down. They earn nothing. Left out: none */
            leagues?: {
                /** @description a board of this book, per week and without group */
                board: string;
                /** @description their names, from the lowest, in which everybody begins */
                divisions: string[];
                /** @description how many go down; up + down is below size */
                down: number;
                /** @description the most members of a cohort */
                size: number;
                /** @description how many of a full cohort go up; of a smaller one fewer, in proportion */
                up: number;
            };
            /** @description levels that users reach by points ever earned, from the lowest */
            levels?: {
                /** @description the least points ever earned; each level's is above the one before */
                from: number;
                /** @description a picture: https://, or data:image/ for a small one */
                image_url?: string;
                name: string;
                /** @description what people see in place of the name; plain text */
                title?: string;
            }[];
            /** @description events that waited in a device, as a time receipt proves; left out: 14 and 60 */
            offline?: {
                /** @description on how many days of a year a user may be offline */
                days_a_year: number;
                /** @description how old an event may be; 0 to 3: no older than without a receipt */
                days_max: number;
            };
            /** @description pauses of a streak; left out: users can have none */
            pauses?: {
                /** @description the most paused dates of any 365 in a row */
                dates_a_year: number;
                /** @description the most dates of one pause */
                dates_max: number;
            };
            /** @description messages to phones that a streak ends tonight; left out: none */
            reminders?: {
                /** @description 00:00 to 23:30, in the zone of the user's dates; a phone may choose another */
                at: string;
                /** @description the one of texts for people whose own is not there; default: en */
                language?: string;
                /** @description by language, such as pt-BR */
                texts: {
                    [key: string]: {
                        /** @description plain text; {days} stands for the streak's length */
                        text: string;
                        /** @description for a streak of one day; left out: `text` */
                        text_of_one?: string;
                        /** @description plain text */
                        title: string;
                    };
                };
            };
            /** @description repairs of a run that has just broken; left out: users can buy none */
            repairs?: {
                /** @description the most repaired dates of any 365 in a row */
                a_year: number;
                /** @description the most missed dates of one repair */
                dates_max: number;
                /** @description the price of each repaired date */
                price_points: number;
                /** @description until so many dates after the first missed one */
                within_days: number;
            };
            /** @description the catalogue, by id */
            rewards?: {
                [key: string]: {
                    /** @description whom the invoices name; each ledger entry has it */
                    brand: string;
                    /** @description what it is; plain text, may have several lines */
                    description?: string;
                    /** @description a picture: https://, or data:image/ for a small one */
                    image_url?: string;
                    /** @description how many one user may get; left out: any number */
                    limit_per_user?: number;
                    /** @description the price of one; users never name it */
                    price_points: number;
                    /** @description how many there are in all; may only be raised. Left out: no limit */
                    stock?: number;
                    /** @description what people see in place of the id; plain text */
                    title?: string;
                    /** @description an instant with its zone (RFC 3339), such as 2027-01-01T00:00:00Z */
                    valid_from?: string;
                    /** @description the first instant at which it is no longer offered */
                    valid_until?: string;
                };
            };
            /** @description streaks besides the daily one, by name */
            streaks?: {
                [key: string]: {
                    description?: string;
                    /** @description the types that count; left out: all that keep streaks */
                    event_types?: string[];
                    /** @description whether a freeze covers a missed period; default: false */
                    freezes?: boolean;
                    /** @description what each period needs; exactly one of active_days, events and sum */
                    needs: {
                        active_days?: number;
                        events?: number;
                        /** @description the sum of a property over the period's events */
                        sum?: {
                            /** @description has up to three decimals */
                            at_least: number;
                            /** @description a number that the data contract has */
                            property: string;
                        };
                    };
                    /** @description whether a pause covers a missed period; default: false */
                    pauses?: boolean;
                    /**
                     * @description a week begins on Monday
                     * @enum {unknown}
                     */
                    per: "day" | "week" | "month";
                    /** @description per day: whether a rest date of `daily` is no miss; default: false */
                    rest_days?: boolean;
                };
            };
        };
        Error: {
            error: {
                /**
                 * @description already_answered: this person has answered the question; the body has the first answer; already_reversed: the redemption has been reversed before; backfill_forbidden: the event is over 72 hours old: that needs a receipt, or permission to backfill; blocked: one of the two users has blocked the other; blocked_max: the user has blocked as many others as are allowed; boards_left: the user has left the boards; the message says how to come back; changes_max: groups and the switch of boards have changed too often; leaving is always possible; conflict: the key was used with another body; or somebody else was first, as the message says; contract_broken: the properties are not as the event type's data contract says; endpoint_ended: the endpoint has ended, and can only be deleted; endpoints_max: there are as many endpoints as are allowed; erased: the person was erased; an admin may lift that for somebody who comes anew; erasure_open: the erasure is not finished yet; forbidden: the caller may not do this, or not for this user; freezes_held_max: the user holds as many freezes as are allowed; friends_max: one of the two users has as many friends as the book of rules allows; friends_not_offered: the book of rules has no friends; hold_ended: the hold was captured, released or has lapsed; holds_max: too many holds are open already; in_the_future: the event is more than 5 minutes ahead; insufficient_balance: the balance does not cover the points; invalid_field: a field is missing or wrong; details name it; invalid_json: the body is no JSON; invalid_parameter: a part of the path or of the query is wrong; kept_apart: an operator has parted these leads; `unite` says that they belong together after all; not_found: there is no such thing; not_repairable: no run of the user can be repaired; details.reason says why; not_reversible: only a redemption can be reversed; open_questions_max: the agent has as many open questions as are allowed; outgoing_off: the stack was deployed without outgoing webhooks; pauses_max: the user has as many pauses as are allowed; price_changed: it has another price than the user was shown; details say which; price_forbidden: a user names a reward, and never points: its price is in the book; question_closed: the question has all the answers it asked for; question_expired: the question's time is over; rate_limited: too many requests in this minute, or of a dear kind today; see Retry-After; receipt_refused: the time receipt proves nothing: it is forged, foreign, used, out of order, expired; redemption_ended: what became of the redemption is settled; details say how; requests_max: too many requests to be a friend wait for an answer; rest_days_kept: rest days may be changed once in 28 days; details say when again; rest_days_not_offered: the book of rules lets nobody choose rest days; reward_limit: the user has as many of this reward as one user may have; reward_not_valid: the reward is not offered now; sold_out: nothing is left of the reward; subscriptions_max: the owner has as many subscriptions as are allowed; too_large: the body is too large; too_many_entries: the answer follows from more ledger entries than one request reads; see the message; too_many_polls: the agent has as many polls waiting as are allowed; too_old: the event is older than events may be; unauthorized: there is no valid token; unavailable: try again; under_review: an admin has yet to look at the account; its points can be spent afterwards; unknown_reward: the book of rules in force has no such reward; unknown_type: no version of the book of rules has this event type; unsupported_media_type: the body is compressed, or of a type that is not taken here
                 * @enum {string}
                 */
                code: "already_answered" | "already_reversed" | "backfill_forbidden" | "blocked" | "blocked_max" | "boards_left" | "changes_max" | "conflict" | "contract_broken" | "endpoint_ended" | "endpoints_max" | "erased" | "erasure_open" | "forbidden" | "freezes_held_max" | "friends_max" | "friends_not_offered" | "hold_ended" | "holds_max" | "in_the_future" | "insufficient_balance" | "invalid_field" | "invalid_json" | "invalid_parameter" | "kept_apart" | "not_found" | "not_repairable" | "not_reversible" | "open_questions_max" | "outgoing_off" | "pauses_max" | "price_changed" | "price_forbidden" | "question_closed" | "question_expired" | "rate_limited" | "receipt_refused" | "redemption_ended" | "requests_max" | "rest_days_kept" | "rest_days_not_offered" | "reward_limit" | "reward_not_valid" | "sold_out" | "subscriptions_max" | "too_large" | "too_many_entries" | "too_many_polls" | "too_old" | "unauthorized" | "unavailable" | "under_review" | "unknown_reward" | "unknown_type" | "unsupported_media_type";
                details?: unknown;
                message: string;
            };
        };
        /**
         * @example {
         *       "idempotency_key": "3f1c",
         *       "event_type": "LESSON_COMPLETED",
         *       "occurred_at": "2026-11-20T23:30:00-05:00",
         *       "timezone": "America/New_York"
         *     }
         */
        Event: {
            /** @description a type of the book of rules (GET /v1/rules); some only servers may declare: streakline/producers or streakline/admin */
            event_type: string;
            /** @description scope: the user; kept for 90 days */
            idempotency_key: string;
            /** @description RFC 3339 with Z or an offset; at most 72 hours ago (with a receipt more; admins, producers: any time from 1970 on), at most 5 minutes ahead */
            occurred_at: string;
            /** @description anything, up to 64 KB as JSON in ASCII: `ü` counts six bytes */
            properties?: Record<string, unknown>;
            source?: string;
            /** @description IANA name or offset (-07:00), also as devices spell them (GMT+03:00, posix/Europe/Berlin); decides the activity date. In place of one that is unknown, the offset of occurred_at does; without that the event is refused */
            timezone?: string | null;
            /** @description admins and producers; else the caller's own */
            user_id?: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    get: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The web page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    getFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                file: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A file of the web page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    getAgentsAgentIdQuestions: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                status?: "OPEN" | "PARTIAL" | "CLOSED" | "EXPIRED";
            };
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An agent's own questions, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description where to go on, also after a short page */
                        cursor: string | null;
                        questions: {
                            agent_id: string;
                            audience: string[];
                            category: string;
                            closed_at?: string;
                            closes_at: string;
                            created_at: string;
                            current_responses: number;
                            duplicate?: boolean;
                            options: string[];
                            prompt: string;
                            question_id: string;
                            required_responses: number;
                            /** @enum {string} */
                            status: "OPEN" | "PARTIAL" | "CLOSED" | "EXPIRED";
                            type: string;
                        }[];
                    };
                };
            };
        };
    };
    getAmnesties: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All amnesties (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        amnesties?: {
                            author?: string;
                            /** Format: date-time */
                            declared_at?: string;
                            /** Format: date-time */
                            from?: string;
                            listed?: boolean;
                            number?: number;
                            reason?: string;
                            revoked_at?: string | null;
                            /** Format: date-time */
                            to?: string;
                            zones?: string[] | null;
                        }[];
                    };
                };
            };
        };
    };
    postAmnesties: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * Format: date-time
                     * @description when the outage began
                     */
                    from: string;
                    /** @description only for those to whom it is applied by name */
                    listed?: boolean;
                    reason: string;
                    /**
                     * Format: date-time
                     * @description when it was over
                     */
                    to: string;
                    /** @description whom it concerns, by zone; left out: everybody */
                    zones?: string[];
                };
            };
        };
        responses: {
            /** @description Declare that an outage counts against nobody (admins) */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        author?: string;
                        /** Format: date-time */
                        declared_at?: string;
                        /** Format: date-time */
                        from?: string;
                        listed?: boolean;
                        number?: number;
                        reason?: string;
                        revoked_at?: string | null;
                        /** Format: date-time */
                        to?: string;
                        zones?: string[] | null;
                    };
                };
            };
        };
    };
    postAmnestiesNumberApply: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                number: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description only say what would become of them */
                    dry_run?: boolean;
                    users: string[];
                };
            };
        };
        responses: {
            /** @description Apply an amnesty, or its revocation, to some users (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        users?: {
                            changed?: boolean;
                            freezes_returned?: number;
                            streak_after?: number;
                            streak_before?: number;
                            user_id?: string;
                        }[];
                    };
                };
            };
        };
    };
    postAmnestiesNumberRevoke: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                number: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoke an amnesty (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        author?: string;
                        /** Format: date-time */
                        declared_at?: string;
                        /** Format: date-time */
                        from?: string;
                        listed?: boolean;
                        number?: number;
                        reason?: string;
                        revoked_at?: string | null;
                        /** Format: date-time */
                        to?: string;
                        zones?: string[] | null;
                    };
                };
            };
        };
    };
    getBoards: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The boards of the book, with their periods: those that go on, and final results */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        boards: {
                            board: string;
                            /** @description the attribute that divides it */
                            group: string | null;
                            /** @description the first period that has begun nowhere; null: there is none */
                            next: {
                                /**
                                 * Format: date
                                 * @description its first date
                                 */
                                first: string;
                                /**
                                 * Format: date
                                 * @description and its last one
                                 */
                                last: string;
                                /** @description 2026-W48, 2026-11, or the first and the last date of a season: 2027-06-01--2027-08-31 */
                                period: string;
                            } | null;
                            /** @enum {string|null} */
                            per: "week" | "month" | null;
                            /** @description those that have begun, the latest first; final results a year back */
                            periods: {
                                /**
                                 * Format: date-time
                                 * @description when it has ended everywhere on earth
                                 */
                                ends_at: string;
                                /**
                                 * Format: date-time
                                 * @description from when on nothing changes it
                                 */
                                final_at: string;
                                /**
                                 * Format: date
                                 * @description its first date
                                 */
                                first: string;
                                /**
                                 * Format: date
                                 * @description and its last one
                                 */
                                last: string;
                                /** @description 2026-W48, 2026-11, or the first and the last date of a season: 2027-06-01--2027-08-31 */
                                period: string;
                                /**
                                 * @description open: it goes on; provisional: late events may come; final: nothing changes it
                                 * @enum {string}
                                 */
                                state: "open" | "provisional" | "final";
                            }[];
                        }[];
                    };
                };
            };
        };
    };
    getBoardsBoardName: {
        parameters: {
            query?: {
                group?: string;
                limit?: number;
                period?: string;
            };
            header?: never;
            path: {
                board_name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A board of a period: the best, and for a user the own rank and the rows around */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description the rows around that user, with the user's own */
                        around?: {
                            /** @description chosen by the user, or a stable pseudonym; null: erased, or has left the boards */
                            alias: string | null;
                            is_me: boolean;
                            rank: number;
                            score: number;
                        }[];
                        /**
                         * Format: date-time
                         * @description when the scores were compared
                         */
                        as_of: string;
                        board: string;
                        /**
                         * Format: date-time
                         * @description when it has ended everywhere on earth
                         */
                        ends_at: string;
                        entries: {
                            /** @description chosen by the user, or a stable pseudonym; null: erased, or has left the boards */
                            alias: string | null;
                            is_me: boolean;
                            rank: number;
                            score: number;
                        }[];
                        /**
                         * Format: date-time
                         * @description from when on nothing changes it
                         */
                        final_at: string;
                        /**
                         * Format: date
                         * @description its first date
                         */
                        first: string;
                        /** @description of whom the list is; left out: the board is undivided */
                        group?: {
                            name: string;
                            value: string;
                        };
                        /** @description the standing is older than it is in ordinary running */
                        is_old: boolean;
                        /**
                         * Format: date
                         * @description and its last one
                         */
                        last: string;
                        /** @description of a caller who is a user, and has not left the boards */
                        me?: {
                            /** @description null: not on this board */
                            rank: number | null;
                            /** @description as it is now; of a final result as it was then */
                            score: number;
                        };
                        /** @description 2026-W48, 2026-11, or the first and the last date of a season: 2027-06-01--2027-08-31 */
                        period: string;
                        /**
                         * @description open: it goes on; provisional: late events may come; final: nothing changes it
                         * @enum {string}
                         */
                        state: "open" | "provisional" | "final";
                        /** @description on the list */
                        users: number;
                    };
                };
            };
        };
    };
    getBoardsBoardNameUsersUserId: {
        parameters: {
            query?: {
                group?: string;
                period?: string;
            };
            header?: never;
            path: {
                board_name: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A user's rank on a board of a period, with the rows around */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description under which others see the user */
                        alias: string;
                        around: {
                            /** @description chosen by the user, or a stable pseudonym; null: erased, or has left the boards */
                            alias: string | null;
                            is_me: boolean;
                            rank: number;
                            score: number;
                        }[];
                        /** Format: date-time */
                        as_of: string;
                        board: string;
                        /**
                         * Format: date-time
                         * @description when it has ended everywhere on earth
                         */
                        ends_at: string;
                        /**
                         * Format: date-time
                         * @description from when on nothing changes it
                         */
                        final_at: string;
                        /**
                         * Format: date
                         * @description its first date
                         */
                        first: string;
                        group?: {
                            name: string;
                            value: string;
                        };
                        is_old: boolean;
                        /**
                         * Format: date
                         * @description and its last one
                         */
                        last: string;
                        /** @description 2026-W48, 2026-11, or the first and the last date of a season: 2027-06-01--2027-08-31 */
                        period: string;
                        /** @description null: not on this board */
                        rank: number | null;
                        /** @description as it is now; of a final result as it was then */
                        score: number;
                        /**
                         * @description open: it goes on; provisional: late events may come; final: nothing changes it
                         * @enum {string}
                         */
                        state: "open" | "provisional" | "final";
                        user_id: string;
                    };
                };
            };
        };
    };
    getDocs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This document as a page */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    getErasuresErasureId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                erasure_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How far an erasure is, and at its end the certificate */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        awaits?: string[];
                        certificate?: Record<string, unknown>;
                        deadline?: string;
                        erasure_id: string;
                        found?: {
                            [key: string]: number;
                        };
                        started_at?: string;
                        /** @enum {string} */
                        status: "open" | "finished";
                    };
                };
            };
        };
    };
    postEvents: {
        parameters: {
            query?: never;
            header?: {
                Prefer?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description each is checked by itself: a bad one never spoils its neighbours */
                    events: components["schemas"]["Event"][];
                    /** @description the time receipt (Streakline-Time-Receipt of an earlier answer) that the device had when the oldest of these events happened. With it events of more than 72 hours ago count that waited in a device without a network. The request names the device, as the one that was answered did (Streakline-Device) */
                    receipt?: string;
                    /** @description when the batch is sent, by the clock that `occurred_at` is read from (RFC 3339). Where that clock is more than two minutes wrong, the times of the events are corrected */
                    sent_at?: string;
                };
            };
        };
        responses: {
            /** @description Send 1 to 100 events, and wait for what comes of it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        accepted: number;
                        duplicates: number;
                        /** @description those that the user has by these events; null: too many entries to say it */
                        new_achievements: {
                            achieved: boolean;
                            /** @description when the event occurred by which it became true */
                            achieved_at: string | null;
                            conditions: {
                                /** @enum {string} */
                                counts: "points_earned" | "count" | "sum" | "streak";
                                event_type?: string;
                                /** @description of a streak: the longest */
                                have: number;
                                needs: number;
                                property?: string;
                                streak?: string;
                            }[];
                            image_url?: string;
                            name: string;
                            /** @enum {string} */
                            needs: "all" | "any";
                            /** @description what the ledger has of the bonus; 0: not yet, or another system has paid */
                            paid?: number;
                            /** @description its bonus, once a user */
                            points?: number;
                            title: string;
                        }[] | null;
                        /** @description the level reached by these events; null: none */
                        new_level: {
                            /** @description the least points ever earned */
                            from: number;
                            image_url?: string;
                            name: string;
                            /** @description null: there is none */
                            next: {
                                /** @description the least points ever earned */
                                from: number;
                                image_url?: string;
                                /** @description points */
                                missing: number;
                                name: string;
                                title: string;
                            } | null;
                            title: string;
                        } | null;
                        /** @description after these events */
                        profile: {
                            active_days: number;
                            /** @description the name on the boards that the user chose; null: a pseudonym */
                            alias?: string | null;
                            as_of?: string;
                            /** @description what can be spent: balance - held */
                            available?: number;
                            /** @description below 0: a debt */
                            balance: number;
                            current_streak: number;
                            /** @description when the date after as_of begins by the clock on the wall, such as 03:00 */
                            day_starts_at?: string;
                            /** @description what is owed: what is earned next pays it */
                            debt?: number;
                            /** @description below 0: a debt */
                            freezes_available: number;
                            last_activity_date: string | null;
                            /** @description by the book in force; null: below the first level, or there are none */
                            level?: {
                                /** @description the least points ever earned */
                                from: number;
                                image_url?: string;
                                name: string;
                                /** @description null: there is none */
                                next: {
                                    /** @description the least points ever earned */
                                    from: number;
                                    image_url?: string;
                                    /** @description points */
                                    missing: number;
                                    name: string;
                                    title: string;
                                } | null;
                                title: string;
                            } | null;
                            longest_streak: number;
                            /** @description those that have not ended by as_of, oldest first */
                            pauses?: {
                                first: string;
                                last: string;
                            }[];
                            /** @description the run that has just broken can be repaired; left out: nothing can be */
                            repair?: {
                                /** @description the missed dates that a repair covers, ascending */
                                dates: string[];
                                /** @description of all of them */
                                price_points: number;
                                /**
                                 * Format: date
                                 * @description the last date on which it can be repaired, if nothing else happens
                                 */
                                until: string;
                            };
                            /** @description the weekdays on which, as of as_of, a date without activity is no miss */
                            rest_days?: ("monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")[];
                            /** @description the user's newest choice of rest days, which may begin later than as_of */
                            rest_days_chosen?: {
                                from: string;
                                rest_days: ("monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")[];
                            };
                            /** @enum {string} */
                            streak_status: "active" | "at_risk" | "broken" | "none";
                            timezone: string;
                            total_bestie_points: number;
                            user_id: string;
                        };
                        /** @description conflicts included */
                        rejected: number;
                        results: {
                            activity_date?: string;
                            /** @description whose boards were final when it came, so that it is on none of them */
                            closed_periods?: string[];
                            /** @description code, message, field; details: all fields, if several are faulty */
                            error?: Record<string, unknown>;
                            event_id?: string;
                            idempotency_key: string | null;
                            /** @description by the cap; below 0: a fine */
                            points?: number;
                            /** @enum {string} */
                            status: "accepted" | "duplicate" | "conflict" | "rejected";
                        }[];
                    };
                };
            };
            /** @description Send 1 to 100 events */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        accepted: number;
                        duplicates: number;
                        /** @description conflicts included */
                        rejected: number;
                        results: {
                            /** @description code, message, field; details: all fields, if several are faulty */
                            error?: Record<string, unknown>;
                            event_id?: string;
                            idempotency_key: string | null;
                            /** @enum {string} */
                            status: "accepted" | "duplicate" | "conflict" | "rejected";
                        }[];
                    };
                };
            };
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Health */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    getHooksOrganizationSource: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization: string;
                source: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Answer a vendor that asks whether this address is ours */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    postHooksOrganizationSource: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization: string;
                source: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Take a vendor's webhook, or a browser's form */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        accepted: number;
                    };
                };
            };
        };
    };
    optionsHooksOrganizationSource: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                organization: string;
                source: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Let a page of an allowed origin send a form as JSON */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    getLeaderboardsBoard: {
        parameters: {
            query?: {
                limit?: number;
                region?: "global" | "africa" | "america" | "antarctica" | "arctic" | "asia" | "atlantic" | "australia" | "europe" | "indian" | "pacific" | "other";
            };
            header?: never;
            path: {
                board: "streaks" | "points";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The best */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * Format: date-time
                         * @description when the scores were compared
                         */
                        as_of: string;
                        board: string;
                        entries: {
                            /** @description chosen by the user, or a stable pseudonym: Swift Heron 42 */
                            alias: string;
                            is_me: boolean;
                            rank: number;
                            score: number;
                        }[];
                        /** @description the board is older than it is in ordinary running: its cache is away */
                        is_old: boolean;
                        region: string;
                    };
                };
            };
        };
    };
    getLeaderboardsBoardUsersUserId: {
        parameters: {
            query?: {
                region?: "global" | "africa" | "america" | "antarctica" | "arctic" | "asia" | "atlantic" | "australia" | "europe" | "indian" | "pacific" | "other";
            };
            header?: never;
            path: {
                board: "streaks" | "points";
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A user's exact rank */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description under which others see the user */
                        alias: string;
                        /**
                         * Format: date-time
                         * @description when the scores were compared
                         */
                        as_of: string;
                        board: string;
                        /** @description the board is older than it is in ordinary running: its cache is away */
                        is_old: boolean;
                        /** @description null: not on this board */
                        rank: number | null;
                        region: string;
                        /** @description as it is now */
                        score: number;
                        user_id: string;
                    };
                };
            };
        };
    };
    getLeads: {
        parameters: {
            query: {
                external_event_id: string;
                integration: string;
                organization_id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lead that an integration's event was stored for */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    deleteLeadsLeadId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                lead_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Erase a lead, with all leads that are the same person */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        awaits?: string[];
                        certificate?: Record<string, unknown>;
                        deadline?: string;
                        erasure_id: string;
                        found?: {
                            [key: string]: number;
                        };
                        started_at?: string;
                        /** @enum {string} */
                        status: "open" | "finished";
                    };
                };
            };
        };
    };
    getLeadsLeadIdChanges: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                lead_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The merges, undoings and refusals that touched a lead */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    getLeadsLeadIdEvents: {
        parameters: {
            query?: {
                cursor?: string;
                from?: string;
                limit?: number;
                to?: string;
                type?: "campaign_bounced" | "campaign_clicked" | "campaign_opened" | "campaign_replied" | "campaign_sent" | "campaign_unsubscribed" | "form_submitted" | "identity_replaced" | "leads_merged" | "leads_unmerged" | "message_received" | "objection_raised" | "order_cancelled" | "order_charged" | "order_refunded" | "page_viewed" | "preference_stated" | "purchase_completed";
            };
            header?: never;
            path: {
                lead_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A lead's events, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    getLeadsLeadIdExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                lead_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How far the export of a lead is, and where it can be had */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        asked_at: string;
                        bytes?: number;
                        expires_at?: string;
                        export_id: string;
                        finished_at?: string;
                        /** @enum {string} */
                        status: "running" | "finished";
                        url?: string;
                        url_expires_at?: string;
                    };
                };
            };
        };
    };
    postLeadsLeadIdExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                lead_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ask for everything that is known of a lead, as a ZIP of JSON and CSV */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        asked_at: string;
                        bytes?: number;
                        expires_at?: string;
                        export_id: string;
                        finished_at?: string;
                        /** @enum {string} */
                        status: "running" | "finished";
                        url?: string;
                        url_expires_at?: string;
                    };
                };
            };
        };
    };
    getLeadsLeadIdFeatures: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                lead_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A lead's features */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description by input: as of when its features are: the request */
                        as_of?: Record<string, unknown>;
                        /** @description when they were last stored */
                        computed_at: string | null;
                        features: {
                            /** @description spent, less refunds, for each order */
                            average_order_value?: number | null;
                            /** @description campaigns of 90 dates without any reaction, less the newest (setting CampaignGraceDays) */
                            campaign_ignored?: number | null;
                            /** @description days since the last order */
                            days_since_last_purchase?: number | null;
                            /** @description orders in 30 dates */
                            frequency_purchases_30d?: number | null;
                            /** @description orders in 90 dates */
                            frequency_purchases_90d?: number | null;
                            /** @description orders in 365 dates */
                            frequency_purchases_365d?: number | null;
                            /** @description whether there is an order */
                            has_purchased?: boolean | null;
                            /** @description the same in 30 dates */
                            monetary_30d?: number | null;
                            /** @description the same in 90 dates */
                            monetary_90d?: number | null;
                            /** @description the same in 365 dates */
                            monetary_365d?: number | null;
                            /** @description spent, less refunds */
                            monetary_total?: number | null;
                            /** @description days since the lead's last activity */
                            recency_days?: number | null;
                            /** @description -1 to 1, of messages in 30 dates */
                            sentiment_avg_30d?: number | null;
                            /** @description days since the first order */
                            tenure_days?: number | null;
                        };
                        lead_id: string;
                        /** @description by currency: orders, and what was spent, less refunds */
                        money?: Record<string, unknown>;
                        /** @description spent, in one currency by ExchangeRates; null where a rate is missing */
                        money_total?: Record<string, unknown> | null;
                    };
                };
            };
        };
    };
    getLeadsLeadIdMemory: {
        parameters: {
            query?: {
                key?: string;
                type?: string;
            };
            header?: never;
            path: {
                lead_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is remembered of a lead */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    postLeadsChangesChangeReversal: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                change: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description whose change it is (default: that of your organizations which has it) */
                    organization_id?: string;
                    reason: string;
                };
            };
        };
        responses: {
            /** @description Undo a merge of leads */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    postLeadsEvents: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description the scope of external event ids and customer ids (default: the source's name) */
                    integration?: string;
                    organization_id: string;
                    /** @description the webhook's body, as it came */
                    payload: Record<string, unknown> | unknown[];
                    /**
                     * @description which decoder reads the payload
                     * @enum {string}
                     */
                    source: "ecommerce" | "email_campaign" | "generic" | "web_form" | "whatsapp";
                };
            };
        };
        responses: {
            /** @description Send an integration's webhook */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        accepted: number;
                        events: {
                            event_type: string;
                            external_event_id: string;
                            /** @description side fields that could not be read, so the event goes without them */
                            omissions?: {
                                field: string;
                                reason: string;
                            }[];
                        }[];
                        /** @description parts of a batch that are no events, at most 100 of them; all are kept for an operator, with the reason */
                        rejected?: {
                            field: string;
                            reason: string;
                        }[];
                    };
                };
            };
        };
    };
    postLeadsLift: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    email?: string;
                    organization_id: string;
                    phone?: string;
                    /** @description an id of WhatsApp's: US.1349120865 */
                    whatsapp?: string;
                };
            };
        };
        responses: {
            /** @description Let an erased person's addresses, numbers and ids make a lead anew (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        lifted: number;
                    };
                };
            };
        };
    };
    postLeadsLookup: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    email?: string;
                    organization_id: string;
                    phone?: string;
                    /** @description an id of WhatsApp's: US.1349120865 */
                    whatsapp?: string;
                };
            };
        };
        responses: {
            /** @description The lead of an e-mail address, a telephone number or an id of WhatsApp's */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    postLeadsMerges: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    leads: string[];
                    reason: string;
                    /** @description also if an operator has parted them before */
                    unite?: boolean;
                };
            };
        };
        responses: {
            /** @description Merge two leads by hand */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    getOpenapiJson: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This document */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    getOperations: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The pipeline, live (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    getQuestions: {
        parameters: {
            query?: {
                audience?: string;
                cursor?: string;
                limit?: number;
                status?: "OPEN" | "PARTIAL" | "CLOSED" | "EXPIRED";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Questions for the caller, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description where to go on, also after a short page */
                        cursor: string | null;
                        questions: {
                            agent_id: string;
                            audience: string[];
                            category: string;
                            closed_at?: string;
                            closes_at: string;
                            created_at: string;
                            current_responses: number;
                            duplicate?: boolean;
                            options: string[];
                            prompt: string;
                            question_id: string;
                            required_responses: number;
                            /** @enum {string} */
                            status: "OPEN" | "PARTIAL" | "CLOSED" | "EXPIRED";
                            type: string;
                        }[];
                    };
                };
            };
        };
    };
    postQuestions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description tags, one of which a person's token has; empty: everybody */
                    audience?: string[];
                    /** @description default: general */
                    category?: string;
                    /** @description RFC 3339, at most 30 days ahead; default: in 24 hours */
                    closes_at?: string;
                    /** @description scope: the agent; the same body again gives the question */
                    idempotency_key: string;
                    /** @description of a multiple_choice question; they differ in more than case and spaces */
                    options?: string[];
                    /** @description plain text */
                    prompt: string;
                    required_responses: number;
                    /** @enum {string} */
                    type: "text" | "multiple_choice";
                };
            };
        };
        responses: {
            /** @description Ask a question (agents) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        agent_id: string;
                        audience: string[];
                        category: string;
                        closed_at?: string;
                        closes_at: string;
                        created_at: string;
                        current_responses: number;
                        duplicate?: boolean;
                        options: string[];
                        prompt: string;
                        question_id: string;
                        required_responses: number;
                        /** @enum {string} */
                        status: "OPEN" | "PARTIAL" | "CLOSED" | "EXPIRED";
                        type: string;
                    };
                };
            };
            /** @description Ask a question (agents) */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        agent_id: string;
                        audience: string[];
                        category: string;
                        closed_at?: string;
                        closes_at: string;
                        created_at: string;
                        current_responses: number;
                        duplicate?: boolean;
                        options: string[];
                        prompt: string;
                        question_id: string;
                        required_responses: number;
                        /** @enum {string} */
                        status: "OPEN" | "PARTIAL" | "CLOSED" | "EXPIRED";
                        type: string;
                    };
                };
            };
        };
    };
    getQuestionsQuestionId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                question_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A question */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        agent_id: string;
                        audience: string[];
                        category: string;
                        closed_at?: string;
                        closes_at: string;
                        created_at: string;
                        current_responses: number;
                        duplicate?: boolean;
                        options: string[];
                        prompt: string;
                        question_id: string;
                        required_responses: number;
                        /** @enum {string} */
                        status: "OPEN" | "PARTIAL" | "CLOSED" | "EXPIRED";
                        type: string;
                    };
                };
            };
        };
    };
    getQuestionsQuestionIdResponses: {
        parameters: {
            query?: {
                after?: number;
                limit?: number;
                wait?: number;
            };
            header?: never;
            path: {
                question_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Answers, in order (the agent who asked) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        current_responses: number;
                        /** @description for `after` */
                        cursor: string;
                        /** @description no answer will follow after the cursor */
                        done: boolean;
                        question_id: string;
                        required_responses?: number;
                        responses: {
                            answer?: string;
                            confidence?: number;
                            created_at: string;
                            number: number;
                            response_id: string;
                            response_time_ms?: number;
                            selected_option?: number;
                        }[];
                        /** @enum {string} */
                        status: "OPEN" | "PARTIAL" | "CLOSED" | "EXPIRED";
                    };
                };
            };
        };
    };
    postQuestionsQuestionIdResponses: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                question_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description of text: what the person says */
                    answer?: string;
                    confidence?: number;
                    /** @description agents: whose answer is relayed; kept as a keyed hash only */
                    fingerprint?: string;
                    response_time_ms?: number;
                    /** @description of multiple_choice: from 0 */
                    selected_option?: number;
                    /** @description IANA name or offset (-07:00); decides the activity date; default: UTC */
                    timezone?: string;
                };
            };
        };
        responses: {
            /** @description Answer a question, once */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        activity_date?: string;
                        created_at: string;
                        current_responses?: number;
                        /** @description its place among the answers */
                        number: number;
                        /** @description before the daily cap */
                        points: number;
                        points_for: Record<string, unknown>;
                        question_id: string;
                        response_id: string;
                        /** @enum {string} */
                        status: "OPEN" | "PARTIAL" | "CLOSED" | "EXPIRED";
                        timezone?: string;
                    };
                };
            };
        };
    };
    getReview: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accounts under review, by user id (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        accounts: {
                            evidence: string[];
                            since: string | null;
                            user_id: string;
                        }[];
                        /** @description null: no more */
                        cursor: string | null;
                    };
                };
            };
        };
    };
    postReviewUserIdRelease: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description End a review (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        evidence: string[];
                        released_at?: string | null;
                        /** @description true: redemptions wait */
                        under_review: boolean;
                        user_id: string;
                    };
                };
            };
        };
    };
    getRewards: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Rewards that are offered now, by id */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description null: no more */
                        cursor: string | null;
                        rewards: {
                            brand: string;
                            /** @description plain text, which may have lines */
                            description?: string;
                            /**
                             * Format: uri
                             * @description a picture of it (https or data:image/)
                             */
                            image_url?: string;
                            /** @description about so many; left out: no end of them */
                            left?: number;
                            limit_per_user?: number;
                            price_points: number;
                            /** @description its id */
                            reward: string;
                            /** @description what people see in place of the id; plain text */
                            title?: string;
                            /** Format: date-time */
                            valid_from?: string;
                            /** Format: date-time */
                            valid_until?: string;
                        }[];
                        /** @description of the book of rules */
                        version: number;
                    };
                };
            };
        };
    };
    getRules: {
        parameters: {
            query?: {
                at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The book of rules in force */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description admins alone */
                        author?: string;
                        book: components["schemas"]["Book"];
                        /** Format: date-time */
                        effective_at: string;
                        note: string;
                        /** Format: date-time */
                        published_at: string;
                        version: number;
                    };
                };
            };
        };
    };
    postRules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description as GET /v1/rules shows it: components.schemas.Book */
                    book: Record<string, unknown>;
                    /** @description only say whether it could be published, and from when */
                    dry_run?: boolean;
                    /** @description `now`, as if left out, or an instant with its zone: from when it is in force */
                    effective?: string;
                    /** @description why, for those who come later */
                    note?: string;
                    /** @description effective may be past: `streakline rules rerate` judges anew what came since */
                    rerate?: boolean;
                };
            };
        };
        responses: {
            /** @description Publish a version of the book (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description admins alone */
                        author?: string;
                        /** Format: date-time */
                        effective_at: string;
                        note: string;
                        /** Format: date-time */
                        published_at: string;
                        version: number;
                    };
                };
            };
            /** @description Publish a version of the book (admins) */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description admins alone */
                        author?: string;
                        /** Format: date-time */
                        effective_at: string;
                        note: string;
                        /** Format: date-time */
                        published_at: string;
                        version: number;
                    };
                };
            };
        };
    };
    getRulesVersions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All versions, the newest first (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        versions: {
                            /** @description admins alone */
                            author?: string;
                            /** Format: date-time */
                            effective_at: string;
                            note: string;
                            /** Format: date-time */
                            published_at: string;
                            version: number;
                        }[];
                    };
                };
            };
        };
    };
    "postRulesWhat-Ifs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description as GET /v1/rules shows it: components.schemas.Book */
                    book: Record<string, unknown>;
                    /** @description the date from which it is in force, by UTC; left out: it always was */
                    from?: string;
                    /** @description the date on which it ends, by UTC; left out: it does not */
                    to?: string;
                };
            };
        };
        responses: {
            /** @description Ask what another book would have led to (admins) */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: date-time */
                        asked_at: string;
                        /** Format: date-time */
                        finished_at?: string;
                        /** @description why it failed */
                        reason?: string;
                        /** @description as `streakline rules what-if --json` prints it */
                        report?: Record<string, unknown>;
                        /** @enum {string} */
                        status: "running" | "finished" | "failed";
                        what_if_id: string;
                    };
                };
            };
        };
    };
    "getRulesWhat-IfsWhatIfId": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                what_if_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How far a what-if is, and at its end the report, for a week (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: date-time */
                        asked_at: string;
                        /** Format: date-time */
                        finished_at?: string;
                        /** @description why it failed */
                        reason?: string;
                        /** @description as `streakline rules what-if --json` prints it */
                        report?: Record<string, unknown>;
                        /** @enum {string} */
                        status: "running" | "finished" | "failed";
                        what_if_id: string;
                    };
                };
            };
        };
    };
    getStats: {
        parameters: {
            query?: {
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The best by points */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        entries: {
                            alias: string;
                            is_me: boolean;
                            points: number;
                            rank: number;
                            total_answers: number;
                        }[];
                    };
                };
            };
        };
    };
    getStatsFingerprint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                fingerprint: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A person's stats */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        alias: string;
                        /** @description the first 9 categories; *: answers in all others */
                        answers_by_category: {
                            [key: string]: number;
                        };
                        badges: string[];
                        badges_earned?: {
                            badge: string;
                            earned_on: string;
                            title: string;
                        }[];
                        /** @description of the first answer */
                        created_at: string | null;
                        fingerprint: string;
                        longest_streak_days: number;
                        streak_days: number;
                        streak_last_date: string | null;
                        /** @enum {string} */
                        streak_status: "active" | "at_risk" | "broken" | "none";
                        timezone: string;
                        total_answers: number;
                        total_points: number;
                    };
                };
            };
        };
    };
    postSubscriptions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description those of the token's tags to hear of, beside questions without tags; default: all */
                    audience?: string[];
                    /** @description of the phone; registered by another person, it is theirs from then on */
                    fcm_token: string;
                    /** @description of that message: a language tag such as pt-BR; null or left out: the book's default */
                    language?: string | null;
                    /** @description the least minutes between two announcements (default 60); 0: each one is sent */
                    min_interval_minutes?: number;
                    /** @description wall-clock times, the first included; may wrap midnight; nothing is sent late */
                    quiet_hours?: {
                        from: string;
                        to: string;
                    } | null;
                    /** @description the hour of that message, 00:00 to 23:30 in the zone of the user's dates; null or left out: the book's */
                    reminders_at?: string | null;
                    /** @description a message in the evening while the streak would end tonight (default false) */
                    streak_reminders?: boolean;
                    /** @description of the quiet hours: IANA name or offset (-07:00); default UTC */
                    timezone?: string;
                };
            };
        };
        responses: {
            /** @description Be told of questions on a phone */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description those of the token's tags to hear of, beside questions without tags; default: all */
                        audience: string[];
                        created_at: string;
                        /** @description of that message: a language tag such as pt-BR; null or left out: the book's default */
                        language: string | null;
                        /** @description the least minutes between two announcements (default 60); 0: each one is sent */
                        min_interval_minutes: number;
                        /** @description wall-clock times, the first included; may wrap midnight; nothing is sent late */
                        quiet_hours: {
                            from: string;
                            to: string;
                        } | null;
                        /** @description the hour of that message, 00:00 to 23:30 in the zone of the user's dates; null or left out: the book's */
                        reminders_at: string | null;
                        /** @description a message in the evening while the streak would end tonight (default false) */
                        streak_reminders: boolean;
                        subscription_id: string;
                        /** @description of the quiet hours: IANA name or offset (-07:00); default UTC */
                        timezone: string;
                        updated_at: string;
                    };
                };
            };
            /** @description Be told of questions on a phone */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description those of the token's tags to hear of, beside questions without tags; default: all */
                        audience: string[];
                        created_at: string;
                        /** @description of that message: a language tag such as pt-BR; null or left out: the book's default */
                        language: string | null;
                        /** @description the least minutes between two announcements (default 60); 0: each one is sent */
                        min_interval_minutes: number;
                        /** @description wall-clock times, the first included; may wrap midnight; nothing is sent late */
                        quiet_hours: {
                            from: string;
                            to: string;
                        } | null;
                        /** @description the hour of that message, 00:00 to 23:30 in the zone of the user's dates; null or left out: the book's */
                        reminders_at: string | null;
                        /** @description a message in the evening while the streak would end tonight (default false) */
                        streak_reminders: boolean;
                        subscription_id: string;
                        /** @description of the quiet hours: IANA name or offset (-07:00); default UTC */
                        timezone: string;
                        updated_at: string;
                    };
                };
            };
        };
    };
    deleteSubscriptionsSubscriptionId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                subscription_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Be told nothing more there */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    getUsers: {
        parameters: {
            query: {
                ids: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Profiles of up to 100 users, for servers and admins */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description ids of nobody of whom anything is known, and of the erased */
                        missing: string[];
                        /** @description in the order of ids */
                        users: {
                            active_days: number;
                            /** @description the name on the boards that the user chose; null: a pseudonym */
                            alias?: string | null;
                            as_of?: string;
                            /** @description what can be spent: balance - held */
                            available?: number;
                            /** @description below 0: a debt */
                            balance: number;
                            current_streak: number;
                            /** @description when the date after as_of begins by the clock on the wall, such as 03:00 */
                            day_starts_at?: string;
                            /** @description what is owed: what is earned next pays it */
                            debt?: number;
                            /** @description below 0: a debt */
                            freezes_available: number;
                            last_activity_date: string | null;
                            /** @description by the book in force; null: below the first level, or there are none */
                            level?: {
                                /** @description the least points ever earned */
                                from: number;
                                image_url?: string;
                                name: string;
                                /** @description null: there is none */
                                next: {
                                    /** @description the least points ever earned */
                                    from: number;
                                    image_url?: string;
                                    /** @description points */
                                    missing: number;
                                    name: string;
                                    title: string;
                                } | null;
                                title: string;
                            } | null;
                            longest_streak: number;
                            /** @description those that have not ended by as_of, oldest first */
                            pauses?: {
                                first: string;
                                last: string;
                            }[];
                            /** @description the run that has just broken can be repaired; left out: nothing can be */
                            repair?: {
                                /** @description the missed dates that a repair covers, ascending */
                                dates: string[];
                                /** @description of all of them */
                                price_points: number;
                                /**
                                 * Format: date
                                 * @description the last date on which it can be repaired, if nothing else happens
                                 */
                                until: string;
                            };
                            /** @description the weekdays on which, as of as_of, a date without activity is no miss */
                            rest_days?: ("monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")[];
                            /** @description the user's newest choice of rest days, which may begin later than as_of */
                            rest_days_chosen?: {
                                from: string;
                                rest_days: ("monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")[];
                            };
                            /** @enum {string} */
                            streak_status: "active" | "at_risk" | "broken" | "none";
                            timezone: string;
                            total_bestie_points: number;
                            user_id: string;
                        }[];
                    };
                };
            };
        };
    };
    getUsersUserId: {
        parameters: {
            query?: {
                as_of?: string;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Profile */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        active_days: number;
                        /** @description the name on the boards that the user chose; null: a pseudonym */
                        alias?: string | null;
                        as_of?: string;
                        /** @description what can be spent: balance - held */
                        available?: number;
                        /** @description below 0: a debt */
                        balance: number;
                        current_streak: number;
                        /** @description when the date after as_of begins by the clock on the wall, such as 03:00 */
                        day_starts_at?: string;
                        /** @description what is owed: what is earned next pays it */
                        debt?: number;
                        /** @description below 0: a debt */
                        freezes_available: number;
                        last_activity_date: string | null;
                        /** @description by the book in force; null: below the first level, or there are none */
                        level?: {
                            /** @description the least points ever earned */
                            from: number;
                            image_url?: string;
                            name: string;
                            /** @description null: there is none */
                            next: {
                                /** @description the least points ever earned */
                                from: number;
                                image_url?: string;
                                /** @description points */
                                missing: number;
                                name: string;
                                title: string;
                            } | null;
                            title: string;
                        } | null;
                        longest_streak: number;
                        /** @description those that have not ended by as_of, oldest first */
                        pauses?: {
                            first: string;
                            last: string;
                        }[];
                        /** @description the run that has just broken can be repaired; left out: nothing can be */
                        repair?: {
                            /** @description the missed dates that a repair covers, ascending */
                            dates: string[];
                            /** @description of all of them */
                            price_points: number;
                            /**
                             * Format: date
                             * @description the last date on which it can be repaired, if nothing else happens
                             */
                            until: string;
                        };
                        /** @description the weekdays on which, as of as_of, a date without activity is no miss */
                        rest_days?: ("monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")[];
                        /** @description the user's newest choice of rest days, which may begin later than as_of */
                        rest_days_chosen?: {
                            from: string;
                            rest_days: ("monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")[];
                        };
                        /** @enum {string} */
                        streak_status: "active" | "at_risk" | "broken" | "none";
                        timezone: string;
                        total_bestie_points: number;
                        user_id: string;
                    };
                };
            };
        };
    };
    deleteUsersUserId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Erase a user (the user, or an admin) */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        awaits?: string[];
                        certificate?: Record<string, unknown>;
                        deadline?: string;
                        erasure_id: string;
                        found?: {
                            [key: string]: number;
                        };
                        started_at?: string;
                        /** @enum {string} */
                        status: "open" | "finished";
                    };
                };
            };
        };
    };
    getUsersUserIdAchievements: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Achievements that the book declares: which, since when, and how far the others are */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        achievements: {
                            achieved: boolean;
                            /** @description when the event occurred by which it became true */
                            achieved_at: string | null;
                            conditions: {
                                /** @enum {string} */
                                counts: "points_earned" | "count" | "sum" | "streak";
                                event_type?: string;
                                /** @description of a streak: the longest */
                                have: number;
                                needs: number;
                                property?: string;
                                streak?: string;
                            }[];
                            image_url?: string;
                            name: string;
                            /** @enum {string} */
                            needs: "all" | "any";
                            /** @description what the ledger has of the bonus; 0: not yet, or another system has paid */
                            paid?: number;
                            /** @description its bonus, once a user */
                            points?: number;
                            title: string;
                        }[];
                        /** @description how many more there are, secret until the user has them */
                        secrets?: number;
                        user_id: string;
                    };
                };
            };
        };
    };
    getUsersUserIdActivity: {
        parameters: {
            query?: {
                covered?: boolean;
                cursor?: string;
                from?: string;
                limit?: number;
                to?: string;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Active dates, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        activity: {
                            /** Format: date */
                            activity_date: string;
                            events_count: number;
                            first_event_id?: string;
                            points_by_type?: Record<string, unknown>;
                            points_earned: number;
                        }[];
                        covered?: {
                            /** Format: date */
                            date: string;
                            /** @enum {string} */
                            reason: "covered_by_freeze" | "repaired" | "paused" | "rest_day" | "short_date" | "skipped_by_zone" | "amnesty";
                        }[];
                        /** @description null: no more */
                        cursor: string | null;
                    };
                };
            };
        };
    };
    putUsersUserIdAlias: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description 1 to 24 letters, their marks and digits of one script (Latin ones also beside Chinese, Japanese and Korean), between them .-_'’· and blanks, two of these in a row at most; ' may also begin it, and ' or . end it. One alone is a Chinese character or a Korean syllable. No name of the service or of its staff, not two words and a number, as pseudonyms are; null: a pseudonym. It is no proof: two users may have the same */
                    alias: string | null;
                };
            };
        };
        responses: {
            /** @description Choose a name for the boards */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        alias: string | null;
                        /** @description the alias, or the pseudonym */
                        shown_as: string;
                        user_id: string;
                    };
                };
            };
        };
    };
    getUsersUserIdAnswers: {
        parameters: {
            query?: {
                cursor?: string;
                from?: string;
                limit?: number;
                to?: string;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A user's own answers, newest first; by default those of 30 days */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        answers: {
                            activity_date?: string;
                            answer?: string;
                            category: string;
                            confidence?: number;
                            created_at: string;
                            /** @description before the daily cap */
                            points: number;
                            question_id: string;
                            response_id: string;
                            response_time_ms?: number;
                            selected_option?: number;
                            timezone?: string;
                            type: string;
                        }[];
                        cursor: string | null;
                    };
                };
            };
        };
    };
    getUsersUserIdBalance: {
        parameters: {
            query?: {
                as_of?: string;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Points, read strongly from the ledger */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: date-time */
                        as_of: string;
                        /** @description what can be spent: balance - held */
                        available?: number;
                        /** @description of the newest ledger entry; below 0: a debt */
                        balance?: number;
                        /** @description what is owed: what is earned next pays it */
                        debt?: number;
                        /** @description what is left of each lot that is yet to expire, the next one first */
                        expiring?: {
                            /** Format: date-time */
                            at: string;
                            points: number;
                        }[];
                        /** @description points that open holds reserve */
                        held?: number;
                        holds?: {
                            duplicate?: boolean;
                            /** Format: date-time */
                            held_at: string;
                            hold_id: string;
                            points: number;
                            reward_id: string;
                            /** @enum {string} */
                            status: "held" | "captured" | "released" | "lapsed";
                            /**
                             * Format: date-time
                             * @description then it lapses by itself
                             */
                            until: string;
                        }[];
                        /** @description with as_of: of the newest entry then */
                        known_balance?: number;
                        /** @description with as_of: with what was written later of then */
                        true_balance?: number;
                        user_id: string;
                    };
                };
            };
        };
    };
    putUsersUserIdBlockedFriendId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                friend_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Block another user */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        friend_id: string;
                        /**
                         * Format: date-time
                         * @description the instant; null: there is nothing
                         */
                        since: string | null;
                        /**
                         * @description what the user has with the other one: a friend, a request to or from, a block, or nothing
                         * @enum {string}
                         */
                        state: "friend" | "asked" | "request" | "blocked" | "none";
                        user_id: string;
                    };
                };
            };
        };
    };
    deleteUsersUserIdBlockedFriendId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                friend_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Let another user ask again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        friend_id: string;
                        /**
                         * Format: date-time
                         * @description the instant; null: there is nothing
                         */
                        since: string | null;
                        /**
                         * @description what the user has with the other one: a friend, a request to or from, a block, or nothing
                         * @enum {string}
                         */
                        state: "friend" | "asked" | "request" | "blocked" | "none";
                        user_id: string;
                    };
                };
            };
        };
    };
    getUsersUserIdBoards: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether a user has left the boards, and in which groups the user is */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        groups: Record<string, unknown>;
                        hidden: boolean;
                        user_id: string;
                    };
                };
            };
        };
    };
    putUsersUserIdBoards: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description true: on no list, in no count and in no group, from the next snapshot on */
                    hidden: boolean;
                };
            };
        };
        responses: {
            /** @description Leave all boards, or come back */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        groups: Record<string, unknown>;
                        hidden: boolean;
                        user_id: string;
                    };
                };
            };
        };
    };
    postUsersUserIdClawbacks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    event_id: string;
                    /** @description scope: the user; kept for 90 days */
                    idempotency_key: string;
                    /** @description why; the user sees it in the ledger */
                    reason: string;
                };
            };
        };
        responses: {
            /** @description Reverse an event and what it earned (streakline/fulfilment) */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description after this entry; below 0: a debt */
                        balance: number;
                        created_at: string;
                        /** @description what is owed after this entry */
                        debt?: number;
                        duplicate?: boolean;
                        entry_id: string;
                        /** @description of a freeze: freeze_granted, freeze_spent, freeze_revoked or freeze_refunded */
                        freeze?: string;
                        kind: string;
                        /**
                         * Format: date-time
                         * @description when its event happened
                         */
                        occurred_at?: string;
                        /** @description signed */
                        points: number;
                        /** @description of a CLAWBACK or RERATE, and of an EARN of 0 points */
                        reason?: string;
                        /** @description of a SETTING: what is set, such as zone, pause or hold */
                        setting?: string;
                    };
                };
            };
        };
    };
    getUsersUserIdEvents: {
        parameters: {
            query?: {
                cursor?: string;
                from?: string;
                limit?: number;
                to?: string;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    getUsersUserIdExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How far the export of a user is, and where it can be had */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        asked_at: string;
                        bytes?: number;
                        expires_at?: string;
                        export_id: string;
                        finished_at?: string;
                        /** @enum {string} */
                        status: "running" | "finished";
                        url?: string;
                        url_expires_at?: string;
                    };
                };
            };
        };
    };
    postUsersUserIdExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ask for everything that is known of a user, as a ZIP of JSON and CSV */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        asked_at: string;
                        bytes?: number;
                        expires_at?: string;
                        export_id: string;
                        finished_at?: string;
                        /** @enum {string} */
                        status: "running" | "finished";
                        url?: string;
                        url_expires_at?: string;
                    };
                };
            };
        };
    };
    postUsersUserIdFreezes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description admins: the first date that the freeze can cover (default: the user's today) */
                    granted_on?: string;
                    /** @description scope: the user; kept for 90 days */
                    idempotency_key?: string;
                };
            };
        };
        responses: {
            /** @description Get a freeze */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description after this entry; below 0: a debt */
                        balance: number;
                        created_at: string;
                        /** @description what is owed after this entry */
                        debt?: number;
                        duplicate?: boolean;
                        entry_id: string;
                        /** @description of a freeze: freeze_granted, freeze_spent, freeze_revoked or freeze_refunded */
                        freeze?: string;
                        kind: string;
                        /**
                         * Format: date-time
                         * @description when its event happened
                         */
                        occurred_at?: string;
                        /** @description signed */
                        points: number;
                        /** @description of a CLAWBACK or RERATE, and of an EARN of 0 points */
                        reason?: string;
                        /** @description of a SETTING: what is set, such as zone, pause or hold */
                        setting?: string;
                    };
                };
            };
        };
    };
    getUsersUserIdFriends: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Friends, the streak that the user has with each, and requests */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description whom the user has asked, and who may still answer */
                        asked: {
                            /** Format: date-time */
                            since: string;
                            user_id: string;
                        }[];
                        /** @description by the user */
                        blocked: {
                            /** Format: date-time */
                            since: string;
                            user_id: string;
                        }[];
                        /** @description the oldest pair first */
                        friends: {
                            /** @description whether the user was active on that date */
                            active_today: boolean;
                            /** @description the name on the boards that the friend chose */
                            alias: string | null;
                            /** @description one of both must still be active today, so that the streak goes on */
                            at_risk: boolean;
                            friend_active_today: boolean;
                            /** Format: date-time */
                            since: string;
                            /** @description dates on which both were active, in their current runs since then */
                            streak: number;
                            /**
                             * Format: date
                             * @description the pair's: it lasts until the later midnight of both
                             */
                            today: string;
                            user_id: string;
                        }[];
                        /** @description the book's */
                        friends_max: number;
                        /** @description of others: they wait for an answer */
                        requests: {
                            alias: string | null;
                            /** Format: date-time */
                            since: string;
                            user_id: string;
                        }[];
                        user_id: string;
                    };
                };
            };
        };
    };
    putUsersUserIdFriendsFriendId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                friend_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: date-time
                     * @description servers alone: when the pair began, not in the future; left out: now
                     */
                    since?: string;
                };
            };
        };
        responses: {
            /** @description Ask another user to be a friend, or answer such a request */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        friend_id: string;
                        /**
                         * Format: date-time
                         * @description the instant; null: there is nothing
                         */
                        since: string | null;
                        /**
                         * @description what the user has with the other one: a friend, a request to or from, a block, or nothing
                         * @enum {string}
                         */
                        state: "friend" | "asked" | "request" | "blocked" | "none";
                        user_id: string;
                    };
                };
            };
        };
    };
    deleteUsersUserIdFriendsFriendId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                friend_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description End a pair, decline a request, or take one back */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        friend_id: string;
                        /**
                         * Format: date-time
                         * @description the instant; null: there is nothing
                         */
                        since: string | null;
                        /**
                         * @description what the user has with the other one: a friend, a request to or from, a block, or nothing
                         * @enum {string}
                         */
                        state: "friend" | "asked" | "request" | "blocked" | "none";
                        user_id: string;
                    };
                };
            };
        };
    };
    getUsersUserIdFriendsBoard: {
        parameters: {
            query?: {
                board?: string;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user among the friends */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description streaks, points, or a board of the book */
                        board: string;
                        /** @description the user and the friends, the best first; without those who have left the boards */
                        entries: {
                            alias: string | null;
                            is_me: boolean;
                            /** @description ties share one */
                            rank: number;
                            score: number;
                            user_id: string;
                        }[];
                        /** @description of a board of the book, such as 2026-W48 */
                        period?: string;
                    };
                };
            };
        };
    };
    putUsersUserIdGroups: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    [key: string]: string;
                };
            };
        };
        responses: {
            /** @description Say in which groups a user is: all of them (servers) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        groups: Record<string, unknown>;
                        hidden: boolean;
                        user_id: string;
                    };
                };
            };
        };
    };
    postUsersUserIdHolds: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description scope: the user; kept for 90 days */
                    idempotency_key: string;
                    points: number;
                    reward_id: string;
                    /** @description for how long; 900 if it is left out */
                    seconds?: number;
                };
            };
        };
        responses: {
            /** @description Reserve points (streakline/fulfilment) */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        duplicate?: boolean;
                        /** Format: date-time */
                        held_at: string;
                        hold_id: string;
                        points: number;
                        reward_id: string;
                        /** @enum {string} */
                        status: "held" | "captured" | "released" | "lapsed";
                        /**
                         * Format: date-time
                         * @description then it lapses by itself
                         */
                        until: string;
                    };
                };
            };
        };
    };
    postUsersUserIdHoldsHoldIdCapture: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                hold_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description how many of the held points are spent; all if it is left out */
                    points?: number;
                };
            };
        };
        responses: {
            /** @description Spend held points, all or some (streakline/fulfilment) */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description after this entry; below 0: a debt */
                        balance: number;
                        created_at: string;
                        /** @description what is owed after this entry */
                        debt?: number;
                        duplicate?: boolean;
                        entry_id: string;
                        /** @description of a freeze: freeze_granted, freeze_spent, freeze_revoked or freeze_refunded */
                        freeze?: string;
                        kind: string;
                        /**
                         * Format: date-time
                         * @description when its event happened
                         */
                        occurred_at?: string;
                        /** @description signed */
                        points: number;
                        /** @description of a CLAWBACK or RERATE, and of an EARN of 0 points */
                        reason?: string;
                        /** @description of a SETTING: what is set, such as zone, pause or hold */
                        setting?: string;
                    };
                };
            };
        };
    };
    postUsersUserIdHoldsHoldIdRelease: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                hold_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Give held points back (streakline/fulfilment) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        duplicate?: boolean;
                        /** Format: date-time */
                        held_at: string;
                        hold_id: string;
                        points: number;
                        reward_id: string;
                        /** @enum {string} */
                        status: "held" | "captured" | "released" | "lapsed";
                        /**
                         * Format: date-time
                         * @description then it lapses by itself
                         */
                        until: string;
                    };
                };
            };
        };
    };
    getUsersUserIdLeague: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user's division, the open league, and the last outcome */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        division: {
                            name: string;
                            /** @description 1 is the lowest */
                            number: number;
                            /** @description how many divisions there are */
                            of: number;
                        };
                        /** @description of the newest league that has closed with the user in it */
                        last: {
                            /** @description in which the user played */
                            division: string;
                            /** @description how many were ranked in the cohort */
                            members: number;
                            points: number;
                            rank: number;
                            week: string;
                            /**
                             * @description where the member goes with this standing
                             * @enum {string}
                             */
                            zone: "up" | "stay" | "down";
                        } | null;
                        /** @description null: the user is in no league now, and joins with the next event that earns points; who has left the boards joins none */
                        league: {
                            /**
                             * Format: date-time
                             * @description six hours after the week has ended everywhere on earth
                             */
                            closes_at: string;
                            /** @description the cohort, best first; some seconds old */
                            entries: {
                                /** @description chosen by the user, or a stable pseudonym */
                                alias: string;
                                is_me: boolean;
                                /** @description of the week */
                                points: number;
                                /** @description who has the same points shares a rank */
                                rank: number;
                                /**
                                 * @description where the member goes with this standing
                                 * @enum {string}
                                 */
                                zone: "up" | "stay" | "down";
                            }[];
                            /**
                             * @description closing: for ten minutes, until the result
                             * @enum {string}
                             */
                            state: "open" | "closing";
                            /** @description the week whose points count: 2026-W48 */
                            week: string;
                        } | null;
                        /** @description false: the user has left the leagues */
                        taking_part: boolean;
                        user_id: string;
                    };
                };
            };
        };
    };
    putUsersUserIdLeague: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description false: leave the leagues. Who comes back once the week's league has closed begins in the lowest division */
                    taking_part: boolean;
                };
            };
        };
        responses: {
            /** @description Leave the leagues, or come back */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        taking_part: boolean;
                        user_id: string;
                    };
                };
            };
        };
    };
    getUsersUserIdLedger: {
        parameters: {
            query?: {
                cursor?: string;
                from?: string;
                limit?: number;
                to?: string;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ledger entries, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    postUsersUserIdLift: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Let an erased id be used anew (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        lifted: number;
                    };
                };
            };
        };
    };
    postUsersUserIdPauses: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description not before the user's today */
                    first: string;
                    /** @description the book's pauses.dates_max is the most dates of a pause */
                    last: string;
                };
            };
        };
        responses: {
            /** @description Pause the streak */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        pauses: {
                            first: string;
                            last: string;
                        }[];
                        user_id: string;
                    };
                };
            };
            /** @description Pause the streak */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        pauses: {
                            first: string;
                            last: string;
                        }[];
                        user_id: string;
                    };
                };
            };
        };
    };
    getUsersUserIdRedemptions: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redeemed rewards, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description null: no more */
                        cursor: string | null;
                        redemptions: {
                            brand: string;
                            /**
                             * Format: date-time
                             * @description when that changed
                             */
                            changed_at?: string;
                            /** Format: date-time */
                            created_at: string;
                            /** @description the redemption was in this state before */
                            duplicate?: boolean;
                            /** @description of the ledger entry */
                            entry_id: string;
                            /** @enum {string} */
                            fulfilment: "requested" | "fulfilled" | "failed" | "reversed";
                            price_points: number;
                            /** @description its id */
                            reward: string;
                            /** @description of the book that named the price */
                            rules_version: number;
                            /** @description what the reward was called when it was redeemed; plain text */
                            title?: string;
                            user_id: string;
                        }[];
                    };
                };
            };
        };
    };
    postUsersUserIdRedemptions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description scope: the user; kept for 90 days */
                    idempotency_key: string;
                    /** @description in place of `reward`, with `reward_id`; only streakline/fulfilment and streakline/admin may */
                    points?: number;
                    /** @description the price that the user was shown: at another one nothing is redeemed */
                    price_points?: number;
                    /** @description a reward of the book (GET /v1/rewards), at the book's price */
                    reward?: string;
                    /** @description what the points are spent on */
                    reward_id?: string;
                };
            };
        };
        responses: {
            /** @description Redeem a reward */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description after this entry; below 0: a debt */
                        balance: number;
                        created_at: string;
                        /** @description what is owed after this entry */
                        debt?: number;
                        duplicate?: boolean;
                        entry_id: string;
                        /** @description of a freeze: freeze_granted, freeze_spent, freeze_revoked or freeze_refunded */
                        freeze?: string;
                        kind: string;
                        /**
                         * Format: date-time
                         * @description when its event happened
                         */
                        occurred_at?: string;
                        /** @description signed */
                        points: number;
                        /** @description of a CLAWBACK or RERATE, and of an EARN of 0 points */
                        reason?: string;
                        /** @description of a SETTING: what is set, such as zone, pause or hold */
                        setting?: string;
                    };
                };
            };
        };
    };
    getUsersUserIdRedemptionsEntryId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                entry_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A redeemed reward, and what has become of it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        brand: string;
                        /**
                         * Format: date-time
                         * @description when that changed
                         */
                        changed_at?: string;
                        /** Format: date-time */
                        created_at: string;
                        /** @description the redemption was in this state before */
                        duplicate?: boolean;
                        /** @description of the ledger entry */
                        entry_id: string;
                        /** @enum {string} */
                        fulfilment: "requested" | "fulfilled" | "failed" | "reversed";
                        price_points: number;
                        /** @description its id */
                        reward: string;
                        /** @description of the book that named the price */
                        rules_version: number;
                        /** @description what the reward was called when it was redeemed; plain text */
                        title?: string;
                        user_id: string;
                    };
                };
            };
        };
    };
    postUsersUserIdRedemptionsEntryIdFailed: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                entry_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user will not get the reward: its points go back, once */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        brand: string;
                        /**
                         * Format: date-time
                         * @description when that changed
                         */
                        changed_at?: string;
                        /** Format: date-time */
                        created_at: string;
                        /** @description the redemption was in this state before */
                        duplicate?: boolean;
                        /** @description of the ledger entry */
                        entry_id: string;
                        /** @enum {string} */
                        fulfilment: "requested" | "fulfilled" | "failed" | "reversed";
                        price_points: number;
                        /** @description its id */
                        reward: string;
                        /** @description of the book that named the price */
                        rules_version: number;
                        /** @description what the reward was called when it was redeemed; plain text */
                        title?: string;
                        user_id: string;
                    };
                };
            };
        };
    };
    postUsersUserIdRedemptionsEntryIdFulfilled: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                entry_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user has the reward */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        brand: string;
                        /**
                         * Format: date-time
                         * @description when that changed
                         */
                        changed_at?: string;
                        /** Format: date-time */
                        created_at: string;
                        /** @description the redemption was in this state before */
                        duplicate?: boolean;
                        /** @description of the ledger entry */
                        entry_id: string;
                        /** @enum {string} */
                        fulfilment: "requested" | "fulfilled" | "failed" | "reversed";
                        price_points: number;
                        /** @description its id */
                        reward: string;
                        /** @description of the book that named the price */
                        rules_version: number;
                        /** @description what the reward was called when it was redeemed; plain text */
                        title?: string;
                        user_id: string;
                    };
                };
            };
        };
    };
    postUsersUserIdRedemptionsEntryIdReversal: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                entry_id: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Undo a redemption (streakline/fulfilment) */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description after this entry; below 0: a debt */
                        balance: number;
                        created_at: string;
                        /** @description what is owed after this entry */
                        debt?: number;
                        duplicate?: boolean;
                        entry_id: string;
                        /** @description of a freeze: freeze_granted, freeze_spent, freeze_revoked or freeze_refunded */
                        freeze?: string;
                        kind: string;
                        /**
                         * Format: date-time
                         * @description when its event happened
                         */
                        occurred_at?: string;
                        /** @description signed */
                        points: number;
                        /** @description of a CLAWBACK or RERATE, and of an EARN of 0 points */
                        reason?: string;
                        /** @description of a SETTING: what is set, such as zone, pause or hold */
                        setting?: string;
                    };
                };
            };
        };
    };
    "putUsersUserIdRest-Days": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description the book's daily.rest_days_chosen is the most of them; none: no rest days */
                    rest_days: ("monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")[];
                };
            };
        };
        responses: {
            /** @description Choose rest days */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description the first date on which they count; null: nothing was ever chosen */
                        from: string | null;
                        rest_days: ("monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")[];
                        user_id: string;
                    };
                };
            };
        };
    };
    getUsersUserIdRewards: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The same, with what the user can have */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description points that can be spent */
                        available: number;
                        /** @description null: no more */
                        cursor: string | null;
                        rewards: {
                            /** @description whether `available` covers the price */
                            affordable: boolean;
                            brand: string;
                            /** @description plain text, which may have lines */
                            description?: string;
                            /**
                             * Format: uri
                             * @description a picture of it (https or data:image/)
                             */
                            image_url?: string;
                            /** @description about so many; left out: no end of them */
                            left?: number;
                            /** @description how many more the user may have */
                            left_for_user?: number;
                            limit_per_user?: number;
                            price_points: number;
                            /** @description its id */
                            reward: string;
                            /** @description what people see in place of the id; plain text */
                            title?: string;
                            /** Format: date-time */
                            valid_from?: string;
                            /** Format: date-time */
                            valid_until?: string;
                        }[];
                        user_id: string;
                        /** @description of the book of rules */
                        version: number;
                    };
                };
            };
        };
    };
    getUsersUserIdStreakExplain: {
        parameters: {
            query: {
                date: string;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Why a day counts or not */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    postUsersUserIdStreakRepair: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description scope: the user; kept for 90 days */
                    idempotency_key?: string;
                    /** @description the price that the user was shown: at another one nothing is repaired */
                    price_points?: number;
                };
            };
        };
        responses: {
            /** @description Repair the run that has just broken */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description the repaired dates, ascending */
                        dates: string[];
                        /** @description the run was repaired before */
                        duplicate?: boolean;
                        /** @description of the ledger, one for each date */
                        entries: {
                            /** @description after this entry; below 0: a debt */
                            balance: number;
                            created_at: string;
                            /** @description what is owed after this entry */
                            debt?: number;
                            duplicate?: boolean;
                            entry_id: string;
                            /** @description of a freeze: freeze_granted, freeze_spent, freeze_revoked or freeze_refunded */
                            freeze?: string;
                            kind: string;
                            /**
                             * Format: date-time
                             * @description when its event happened
                             */
                            occurred_at?: string;
                            /** @description signed */
                            points: number;
                            /** @description of a CLAWBACK or RERATE, and of an EARN of 0 points */
                            reason?: string;
                            /** @description of a SETTING: what is set, such as zone, pause or hold */
                            setting?: string;
                        }[];
                        /** @description of all of them */
                        price_points: number;
                    };
                };
            };
        };
    };
    getUsersUserIdStreaks: {
        parameters: {
            query?: {
                as_of?: string;
            };
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All streaks: the daily one, and those that the book declares */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        as_of: string;
                        streaks: {
                            current_streak: number;
                            freezes_used?: number;
                            /** @description the first date of the newest one */
                            last_reached: string | null;
                            longest_streak: number;
                            /** @description daily: the streak of the profile */
                            name: string;
                            /** @enum {string} */
                            per: "day" | "week" | "month";
                            /** @description a date, a week or a month, with what it needs; without that: nothing is asked */
                            period?: {
                                /** @enum {string} */
                                counts?: "active_days" | "events" | "sum";
                                first: string;
                                have?: number;
                                last: string;
                                missing?: number;
                                needs?: number;
                                property?: string;
                            };
                            /** @description periods that were reached, in all */
                            reached: number;
                            /** @enum {string} */
                            status: "active" | "at_risk" | "broken" | "none";
                        }[];
                        user_id: string;
                    };
                };
            };
        };
    };
    getUsersUserIdStreaksNameExplain: {
        parameters: {
            query: {
                date: string;
            };
            header?: never;
            path: {
                name: string;
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Why a date's period counts for a streak or not */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        contributions: {
                            adds: number;
                            date: string;
                        }[];
                        counts: boolean;
                        date: string;
                        name: string;
                        /** @description a date, a week or a month, with what it needs; without that: nothing is asked */
                        period: {
                            /** @enum {string} */
                            counts?: "active_days" | "events" | "sum";
                            first: string;
                            have?: number;
                            last: string;
                            missing?: number;
                            needs?: number;
                            property?: string;
                        };
                        /** @enum {string} */
                        reason: "reached" | "covered_by_freeze" | "paused" | "rest_day" | "skipped_by_zone" | "short_date" | "missed" | "not_over_yet" | "not_asked" | "before_first_period";
                        rule: string;
                        rules_version: number;
                        streak_length: number;
                        user_id: string;
                    };
                };
            };
        };
    };
    putUsersUserIdTimezone: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    timezone: string;
                };
            };
        };
        responses: {
            /** @description Set the zone */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        observed_zones: {
                            at: string;
                            timezone: string;
                        }[];
                        recent_tz_changes: {
                            at: string;
                            timezone: string;
                        }[];
                        /** @description the zone in force */
                        timezone: string;
                        /** @description true: redemptions wait */
                        under_review: boolean;
                        user_id: string;
                    };
                };
            };
        };
    };
    "getWebhook-Endpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All endpoints (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        endpoints: {
                            /** @description whose questions it is told of (question.closed); left out or empty: nobody's */
                            agents: string[];
                            /** Format: date-time */
                            created_at: string;
                            description: string;
                            /** @description why nothing is sent; empty while it is */
                            disabled: string;
                            endpoint_id: string;
                            /** @description by type: the values that a text or number of `data` must have, or how much at least */
                            filters: {
                                "achievement.earned"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "board.finished"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "friend.added"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "friend.ended"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "friend.requested"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "hold.expired"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "lead.updated"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "league.closed"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "level.changed"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "points.changed"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "profile.changed"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "question.closed"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "reward.redeemed"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "streak.at_risk"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "streak.corrected"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "streak.extended"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                                "streak.lost"?: {
                                    [key: string]: ((string | number | boolean) | {
                                        at_least: number;
                                    })[];
                                };
                            };
                            organization_id: string;
                            /** @description of notifications; left out or empty: all of them */
                            types: ("achievement.earned" | "board.finished" | "friend.added" | "friend.ended" | "friend.requested" | "hold.expired" | "lead.updated" | "league.closed" | "level.changed" | "points.changed" | "profile.changed" | "question.closed" | "reward.redeemed" | "streak.at_risk" | "streak.corrected" | "streak.extended" | "streak.lost")[];
                            /** @description https, at a public address */
                            url: string;
                        }[];
                    };
                };
            };
        };
    };
    "postWebhook-Endpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description whose questions it is told of (question.closed); left out or empty: nobody's */
                    agents?: string[];
                    description?: string;
                    /** @description by type: the values that a text or number of `data` must have, or how much at least */
                    filters?: {
                        "achievement.earned"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "board.finished"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "friend.added"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "friend.ended"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "friend.requested"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "hold.expired"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "lead.updated"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "league.closed"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "level.changed"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "points.changed"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "profile.changed"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "question.closed"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "reward.redeemed"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "streak.at_risk"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "streak.corrected"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "streak.extended"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                        "streak.lost"?: {
                            [key: string]: ((string | number | boolean) | {
                                at_least: number;
                            })[];
                        };
                    };
                    organization_id: string;
                    /** @description of notifications; left out or empty: all of them */
                    types?: ("achievement.earned" | "board.finished" | "friend.added" | "friend.ended" | "friend.requested" | "hold.expired" | "lead.updated" | "league.closed" | "level.changed" | "points.changed" | "profile.changed" | "question.closed" | "reward.redeemed" | "streak.at_risk" | "streak.corrected" | "streak.extended" | "streak.lost")[];
                    /** @description https, at a public address */
                    url: string;
                };
            };
        };
        responses: {
            /** @description Register an endpoint for outgoing webhooks (admins) */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description whose questions it is told of (question.closed); left out or empty: nobody's */
                        agents: string[];
                        /** Format: date-time */
                        created_at: string;
                        description: string;
                        /** @description why nothing is sent; empty while it is */
                        disabled: string;
                        endpoint_id: string;
                        /** @description by type: the values that a text or number of `data` must have, or how much at least */
                        filters: {
                            "achievement.earned"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "board.finished"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "friend.added"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "friend.ended"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "friend.requested"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "hold.expired"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "lead.updated"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "league.closed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "level.changed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "points.changed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "profile.changed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "question.closed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "reward.redeemed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "streak.at_risk"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "streak.corrected"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "streak.extended"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "streak.lost"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                        };
                        organization_id: string;
                        /** @description it is shown this once */
                        secret: string;
                        /** @description of notifications; left out or empty: all of them */
                        types: ("achievement.earned" | "board.finished" | "friend.added" | "friend.ended" | "friend.requested" | "hold.expired" | "lead.updated" | "league.closed" | "level.changed" | "points.changed" | "profile.changed" | "question.closed" | "reward.redeemed" | "streak.at_risk" | "streak.corrected" | "streak.extended" | "streak.lost")[];
                        /** @description https, at a public address */
                        url: string;
                    };
                };
            };
        };
    };
    "deleteWebhook-EndpointsEndpointId": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                endpoint_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description End an endpoint (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
        };
    };
    "postWebhook-EndpointsEndpointIdEnable": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                endpoint_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Send to an endpoint again that had answered 410 Gone (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description whose questions it is told of (question.closed); left out or empty: nobody's */
                        agents: string[];
                        /** Format: date-time */
                        created_at: string;
                        description: string;
                        /** @description why nothing is sent; empty while it is */
                        disabled: string;
                        endpoint_id: string;
                        /** @description by type: the values that a text or number of `data` must have, or how much at least */
                        filters: {
                            "achievement.earned"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "board.finished"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "friend.added"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "friend.ended"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "friend.requested"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "hold.expired"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "lead.updated"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "league.closed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "level.changed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "points.changed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "profile.changed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "question.closed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "reward.redeemed"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "streak.at_risk"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "streak.corrected"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "streak.extended"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                            "streak.lost"?: {
                                [key: string]: ((string | number | boolean) | {
                                    at_least: number;
                                })[];
                            };
                        };
                        organization_id: string;
                        /** @description of notifications; left out or empty: all of them */
                        types: ("achievement.earned" | "board.finished" | "friend.added" | "friend.ended" | "friend.requested" | "hold.expired" | "lead.updated" | "league.closed" | "level.changed" | "points.changed" | "profile.changed" | "question.closed" | "reward.redeemed" | "streak.at_risk" | "streak.corrected" | "streak.extended" | "streak.lost")[];
                        /** @description https, at a public address */
                        url: string;
                    };
                };
            };
        };
    };
    "postWebhook-EndpointsEndpointIdSecret": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                endpoint_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description 24, if left out */
                    overlap_hours?: number;
                };
            };
        };
        responses: {
            /** @description Rotate an endpoint's secret: for a while both sign (admins) */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description until then both sign */
                        former_until: string;
                        /** @description it is shown this once */
                        secret: string;
                    };
                };
            };
        };
    };
    "postWebhook-EndpointsEndpointIdTest": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                endpoint_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description Send an endpoint a test message (admins) */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        message_id: string;
                    };
                };
            };
        };
    };
}
