// Requests of a Go program with go-gitlab, including the list of repositories of Argo CD.
package main

import (
	"encoding/json"
	"net/http"
	"os"
	"time"

	"github.com/xanzy/go-gitlab"
)

type given struct{ Host, Token, Group, Username string }

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	var in given
	check(json.Unmarshal([]byte(os.Args[1]), &in))
	client, err := gitlab.NewClient(in.Token, gitlab.WithBaseURL(in.Host))
	check(err)
	yes, no, topic := true, false, ""
	project := in.Group + "/shop"
	told := map[string]interface{}{}

	repositories, page, err := client.Groups.ListGroupProjects(in.Group, &gitlab.ListGroupProjectsOptions{
		ListOptions:      gitlab.ListOptions{PerPage: 100},
		IncludeSubGroups: &yes, WithShared: &yes, Topic: &topic,
	})
	check(err)
	urls := []string{}
	for _, each := range repositories {
		urls = append(urls, each.SSHURLToRepo)
	}
	told["urls"], told["last"] = urls, page.CurrentPage >= page.TotalPages

	since, level := time.Now().Add(-time.Hour), gitlab.MinimalAccessPermissions
	projects, _, err := client.Projects.ListProjects(&gitlab.ListProjectsOptions{
		Membership: &yes, Statistics: &yes, MinAccessLevel: &level, LastActivityAfter: &since,
		WithCustomAttributes: &yes, WithMergeRequestsEnabled: &yes, Starred: &no,
	})
	check(err)
	told["projects"], told["active"] = len(projects), projects[0].LastActivityAt != nil

	one, _, err := client.Projects.GetProject(project, &gitlab.GetProjectOptions{License: &yes, Statistics: &yes})
	check(err)
	told["branch"] = one.DefaultBranch

	groups, _, err := client.Groups.ListGroups(&gitlab.ListGroupsOptions{
		MinAccessLevel: &level, Statistics: &yes, WithCustomAttributes: &yes, AllAvailable: &no,
	})
	check(err)
	told["groups"] = len(groups)

	states := "stopped"
	stopped, _, err := client.Environments.ListEnvironments(project, &gitlab.ListEnvironmentsOptions{States: &states})
	check(err)
	told["stopped"] = len(stopped)

	members, _, err := client.Groups.ListAllGroupMembers(in.Group, &gitlab.ListGroupMembersOptions{})
	check(err)
	told["members"], told["picture"] = len(members), members[0].AvatarURL != ""

	users, _, err := client.Users.ListUsers(&gitlab.ListUsersOptions{
		Username: &in.Username, ExcludeInternal: &yes, WithCustomAttributes: &yes,
	})
	check(err)
	told["users"] = len(users)

	statuses, _, err := client.Commits.GetCommitStatuses(
		project, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", &gitlab.GetCommitStatusesOptions{All: &yes},
	)
	check(err)
	told["statuses"] = len(statuses)

	notes := "notes"
	own, _, err := client.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: &notes})
	check(err)
	told["own"] = own.Namespace.Kind + " " + own.PathWithNamespace
	namespaces, _, err := client.Namespaces.ListNamespaces(&gitlab.ListNamespacesOptions{})
	check(err)
	told["namespaces"] = len(namespaces)

	group, _, err := client.Groups.GetGroup(in.Group, nil)
	check(err)
	reporter := gitlab.ReporterPermissions
	_, err = client.Projects.ShareProjectWithGroup(own.ID, &gitlab.ShareWithGroupOptions{GroupID: &group.ID, GroupAccess: &reporter})
	check(err)
	shared, _, err := client.Projects.GetProject(own.ID, nil)
	check(err)
	told["shared"] = shared.SharedWithGroups[0].GroupAccessLevel
	_, err = client.Projects.DeleteSharedProjectFromGroup(own.ID, group.ID)
	check(err)

	hooks, _, err := client.Projects.ListProjectHooks(own.ID, nil)
	check(err)
	told["hooks"] = len(hooks)

	production := "production"
	made, _, err := client.Environments.CreateEnvironment(own.ID, &gitlab.CreateEnvironmentOptions{Name: &production})
	check(err)
	_, err = client.Environments.StopEnvironment(own.ID, made.ID)
	check(err)
	now, _, err := client.Environments.GetEnvironment(own.ID, made.ID)
	check(err)
	told["state"] = now.State

	_, answer, err := client.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: &in.Group, Path: &in.Group})
	told["taken"] = err != nil && answer.StatusCode == http.StatusBadRequest
	told["error"] = err.Error()
	check(json.NewEncoder(os.Stdout).Encode(told))
}
