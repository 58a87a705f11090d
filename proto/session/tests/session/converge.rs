//! Whatever happens on the way, both maps converge, within the window, and nothing known travels twice.

use proptest::prelude::*;

use crate::fixture::{WINDOW, World, leader, live, start, stop, stopped};

/// Something that can happen to the two ends.
#[derive(Clone, Debug)]
enum Step {
    Have(u64),
    Finished(u64),
    HaveNothing(u64),
    Start(u64),
    Stop(u64),
    WantNothing(u64),
    Acknowledge(u64),
    Up(usize),
    Down(usize),
    /// Both ends notice.
    Cut,
    /// Only the spoke notices and comes back; the hub learns from the new connection.
    Reconnect,
    /// As a `Cut`, but frames that were under way still arrive at the hub before it notices.
    LateCut(usize),
    RestartHub,
    RestartAgent,
    Wait(i64),
    /// Everything under way arrives: if there is a session, both ends are in step, without a new one.
    Settle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 1..12_u64;
    let step = prop_oneof![
        6 => key.clone().prop_map(Step::Have),
        2 => key.clone().prop_map(Step::Finished),
        2 => key.clone().prop_map(Step::HaveNothing),
        6 => key.clone().prop_map(Step::Start),
        2 => key.clone().prop_map(Step::Stop),
        2 => key.clone().prop_map(Step::WantNothing),
        3 => key.prop_map(Step::Acknowledge),
        8 => (1..6_usize).prop_map(Step::Up),
        8 => (1..6_usize).prop_map(Step::Down),
        1 => Just(Step::Cut),
        3 => Just(Step::Reconnect),
        1 => (0..6_usize).prop_map(Step::LateCut),
        1 => Just(Step::RestartHub),
        1 => Just(Step::RestartAgent),
        1 => (1..40_000_i64).prop_map(Step::Wait),
        2 => Just(Step::Settle),
    ];
    proptest::collection::vec(step, 0..120)
}

struct Run {
    world: World,
    version: u64,
    boot: u64,
    term: u64,
}

impl Run {
    fn new() -> Self {
        Self { world: World::new(), version: 0, boot: 1, term: 1 }
    }

    fn take(&mut self, step: &Step) {
        let world = &mut self.world;
        self.version += 1;
        match step {
            Step::Have(i) => world.have(*i, live(*i, self.boot, self.version)),
            Step::Finished(i) => world.have(*i, stopped(*i, self.boot, self.version)),
            Step::HaveNothing(i) => world.have_nothing(*i),
            Step::Start(i) => world.want(*i, start(*i, self.version)),
            Step::Stop(i) => world.want(*i, stop(*i, self.version)),
            Step::WantNothing(i) => world.want_nothing(*i),
            Step::Acknowledge(i) => world.acknowledge(*i),
            Step::Up(n) => world.deliver(*n, 0),
            Step::Down(n) => world.deliver(0, *n),
            Step::Cut => world.cut(),
            Step::Reconnect => world.connect(),
            Step::LateCut(n) => {
                world.spoke(fairlead_session::SpokeInput::Disconnected);
                world.deliver(*n, 0);
                world.cut();
            }
            Step::RestartHub => {
                self.term += 1;
                world.restart_hub(leader(self.term));
            }
            Step::RestartAgent => {
                self.boot += 1;
                world.restart_agent(self.boot);
            }
            Step::Wait(ms) => {
                world.mono += ms;
                world.hub(fairlead_session::HubInput::Tick);
                world.spoke(fairlead_session::SpokeInput::Tick);
            }
            Step::Settle => {
                world.settle();
                if world.brain.up && world.agent.established.is_some() {
                    world.assert_in_step();
                }
            }
        }
        assert!(self.world.flying_observations().len() <= WINDOW, "more observations under way than allowed");
        assert!(self.world.flying_commands().len() <= WINDOW, "more commands under way than allowed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn both_maps_converge_after_any_history(steps in steps()) {
        let mut run = Run::new();
        for step in &steps {
            run.take(step);
        }
        let world = &mut run.world;
        world.connect();
        world.settle();
        world.assert_in_step();

        // Every acknowledgement reaches an agent that waits for it, over a lost connection too.
        for i in 1..12 {
            world.have(i, stopped(i, run.boot, run.version + i));
        }
        world.settle();
        for i in 1..12 {
            world.acknowledge(i);
        }
        world.cut();
        world.entries_sent = (0, 0);
        world.connect();
        world.settle();
        world.assert_in_step();
        prop_assert_eq!(world.entries_sent, (0, 0), "entries known to the other side were sent again");
        prop_assert_eq!(world.agent.acknowledged.len(), 11);
    }
}

/// What travels after a break follows what changed, not what exists.
#[test]
fn a_reconnect_sends_what_changed() {
    let mut run = Run::new();
    for i in 1..=1000 {
        run.take(&Step::Have(i));
        run.take(&Step::Start(i));
    }
    let world = &mut run.world;
    world.connect();
    world.settle();
    assert_eq!(world.entries_sent, (1000, 1000));
    world.cut();
    world.entries_sent = (0, 0);
    world.have(7, live(7, 1, 9999));
    world.want(8, stop(8, 9999));
    world.have_nothing(9);
    world.want_nothing(10);
    world.connect();
    world.settle();
    world.assert_in_step();
    let (observations, commands) = world.entries_sent;
    // Two buckets of 64 differ in each map; with 1000 keys a bucket holds about 16.
    assert!((1..80).contains(&observations) && (1..80).contains(&commands), "{:?}", world.entries_sent);
}
